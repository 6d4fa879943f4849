"""`translator diff` on the real broker shows which fields of which events differ."""

import json
from collections.abc import Sequence

import msgspec
import pytest
from confluent_kafka import Producer

from tests.translator.commands._bench import Bench, row
from translator.codecs.avro import AvroCodec, confluent_header
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.config.settings import load
from translator.message import Message

SECRET = "a-cell-of-a-row"


def events(shop: Bench) -> Sequence[object]:
    """Return the events of three messages."""
    from translator.operations.offline_translator import OfflineTranslator

    again = OfflineTranslator(load(shop.config), print)
    messages = [Message(shop.raw, 0, offset, 1000, None, row(offset + 1)) for offset in range(3)]
    found = [event for message in messages for event in getattr(again.translate(message).events, "events", [])]
    again.close()
    return found


def put(shop: Bench, name: str, partitions: int, records: Sequence[Record]) -> str:
    """Create a topic with these records, spread over all partitions."""
    topic = f"{shop.name}-{name}"
    shop.create(topic, partitions)
    producer = Producer(shop.client)
    for number, record in enumerate(records):
        producer.produce(topic, record.value, record.key, number % partitions, headers=record.headers)
    assert 0 == producer.flush(20)
    return topic


def encoded(codec: object, found: Sequence[object]) -> list[Record]:
    return [record for event in found for record in codec.encode(event)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "codec", [AvroCodec(), AvroCodec(confluent_header(7)), JsonCodec()], ids=["avro", "id", "json"]
)
def test_equal_events(shop: Bench, codec: object) -> None:
    """The codec, the number of partitions, the order and duplicates make no difference."""
    found = events(shop)
    a = put(shop, "a", 1, encoded(AvroCodec(), found))
    b = put(shop, "b", 2, encoded(codec, [*reversed(found), found[0]]))
    ran = shop.run("diff", a, b)
    assert 0 == ran.returncode, ran.stderr
    assert ["equal=6 different=0 only_a=0 only_b=0 duplicates_a=0 duplicates_b=1"] == ran.stdout.splitlines()


def test_by_field(shop: Bench) -> None:
    """Fields are listed with their counts and the first ids, and values only on request."""
    found = events(shop)
    changed = [
        msgspec.structs.replace(event, notes=["NEW"], **({"after": f'{{"x":"{SECRET}"}}'} if number < 2 else {}))  # type: ignore[type-var]
        for number, event in enumerate(found[:5])
    ]
    a, b = put(shop, "a", 1, encoded(AvroCodec(), found[:4])), put(shop, "b", 1, encoded(AvroCodec(), changed))
    ran = shop.run("diff", a, b)
    ids = [event.id for event in found]  # type: ignore[attr-defined]
    assert 1 == ran.returncode, ran.stderr
    assert ["notes: 4", *(f"  {id_}" for id_ in ids[:4]), "after: 2", f"  {ids[0]}", f"  {ids[1]}"] == (
        ran.stdout.splitlines()[:8]
    )
    assert [f"only in {b}: 1", f"  {ids[4]}"] == ran.stdout.splitlines()[8:10]
    assert "equal=0 different=4 only_a=0 only_b=1 duplicates_a=0 duplicates_b=0" == ran.stdout.splitlines()[-1]
    assert SECRET not in ran.stdout + ran.stderr
    assert SECRET in shop.run("diff", "--values", a, b).stdout
    told = shop.run("diff", "--json", a, b)
    assert (1, 4, [{"id": ids[4]}]) == (
        told.returncode, json.loads(told.stdout)["different"], json.loads(told.stdout)["only_b"]["first"]
    )  # fmt: skip


def test_only_in_the_first(shop: Bench) -> None:
    """An event that the second topic lacks is a difference."""
    found = events(shop)
    a, b = put(shop, "a", 1, encoded(AvroCodec(), found)), put(shop, "b", 1, encoded(AvroCodec(), found[1:]))
    ran = shop.run("diff", a, b)
    assert (1, [f"only in {a}: 1", f"  {found[0].id}"]) == (ran.returncode, ran.stdout.splitlines()[:2])  # type: ignore[attr-defined]


def test_records_beside_the_value(shop: Bench) -> None:
    """Keys and headers are compared. Different bytes with equal meaning are distinguished from equal bytes."""
    first, second, third = encoded(JsonCodec(), events(shop)[:3])
    a = put(shop, "a", 1, [first, second, third])
    value = (third.value or b"") + b" "
    others = [Record(b"k", first.value, first.headers), Record(second.key, second.value, [*second.headers, ("x", b"")])]
    b = put(shop, "b", 1, [*others, Record(third.key, value, third.headers)])
    ran = shop.run("diff", a, b)
    assert {"(key of the record): 1", "(headers of the record): 1", "(bytes of the value): 1"} <= set(
        ran.stdout.splitlines()
    )


def test_what_is_no_event(shop: Bench) -> None:
    """A topic with other content leads to exit code 1 and the position, a missing topic to exit code 2."""
    shop.feed([row(1)])
    ran = shop.run("diff", shop.raw, shop.raw)
    assert (1, f"translator: the record in {shop.raw}/0 at offset 0 is not an event") == (
        ran.returncode,
        ran.stderr.splitlines()[-1],
    )
    assert 2 == shop.run("diff", shop.raw, "elsewhere").returncode
