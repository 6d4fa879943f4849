"""`translator project` writes the canonical topic to a projection, as the service would have."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from tests.translator.commands._bench import PARTITIONS, Bench, row
from translator.codecs import Codec
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.config import settings as settings_module
from translator.errors import FatalError
from translator.kafka.offset_ranges import Partitions, message_of
from translator.operations.offline_translator import OfflineTranslator
from translator.operations.project import project
from translator.resolution.builders import build_codecs
from translator.resolution.resolve import schema_record
from translator.translation.translate import Events


@pytest.fixture
def projected(shop: Bench) -> Bench:
    """A service with two projections that it does not write yet."""
    projections = [
        {"topic": f"{shop.name}-debezium", "codec": "debezium"},
        {"topic": f"{shop.name}-t.{{source}}.{{table}}", "codec": "upsert", "options": {"key": "columns"}},
    ]
    shop.document["projections"] = projections
    shop.config.write_text(yaml.safe_dump(shop.document))
    return shop


def run(shop: Bench, topic: str) -> Any:
    return shop.run("project", "--from", "canonical", "--topic", topic)


def translated(shop: Bench, codec: Codec) -> list[list[list[Record]]]:
    """Return the records of each message of each raw partition as the service encodes them, or none for a refused
    message.

    The schemas that they reference are written to the schemas topic.
    """
    again = OfflineTranslator(settings_module.load(shop.config), print)
    partitions, producer = Partitions(again.client, "unused"), Producer(shop.client)
    found: list[list[list[Record]]] = []
    for number in range(PARTITIONS):
        found.append([])
        for raw in partitions.read(partitions.bounds(shop.raw, number)):
            message = message_of(raw, again.facts(shop.raw).id)
            events = again.translate(message).events
            assert isinstance(events, Events)
            records = again.translator(shop.raw).encode(codec, message, events)
            found[-1].append(records if isinstance(records, list) else [])
            for schema in events.schemas:
                if schema is not None:
                    announced = schema_record(schema)
                    producer.produce(f"{shop.canonical}.schemas", announced.value, announced.key)
    assert 0 == producer.flush(20)
    partitions.close()
    again.close()
    return found


def written(shop: Bench, topic: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in shop.read(topic):
        headers = [(name, value) for name, value in record.headers() or ()]
        found.setdefault(record.partition(), []).append(Record(record.key(), record.value(), headers))
    return found


def together(messages: Sequence[Sequence[Record]]) -> list[Record]:
    """Return their headers as a consumer receives them."""
    return [Record(record.key, record.value, _bytes(record)) for records in messages for record in records]


def _bytes(record: Record) -> list[tuple[str, str | bytes | None]]:
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in record.headers]


def test_the_records_of_the_service(projected: Bench) -> None:
    """The projection gets the same bytes in order. The next run continues there and needs new events."""
    topic = f"{projected.name}-debezium"
    projected.feed([row(1), row(2)], 0)
    projected.feed([row(3, "u")], 1)
    projected.serve()
    first = translated(projected, DebeziumCodec())
    ran = run(projected, topic)
    assert 0 == ran.returncode, ran.stderr
    assert f"events=6 written=6 refused=0 output={topic}" == ran.stdout.splitlines()[-1]
    assert 3 == sum(line.startswith(f"{projected.canonical}/") for line in ran.stdout.splitlines())
    projected.feed([row(4)], 1)
    projected.serve()  # everything once more, as after a crash
    second = translated(projected, DebeziumCodec())
    assert "events=8 written=8" in run(projected, topic).stdout
    assert "events=0 written=0" in run(projected, topic).stdout
    expected = [together([*first[number], *second[number]]) for number in range(PARTITIONS)]
    found = written(projected, topic)
    assert sorted(map(len, expected)) == sorted(map(len, found.values()))
    assert all(records in expected for records in found.values())


def test_a_topic_for_each_table(projected: Bench) -> None:
    """A message that the projection rejects is omitted completely and reported. The others are written."""
    template = projected.document["projections"][1]["topic"]
    keyless = row(2).replace(b'["id"]', b"null")
    projected.feed([row(1), keyless, row(3, "u")])
    projected.serve()
    codec = build_codecs(settings_module.load(projected.config))[template]
    one, refused, other = translated(projected, codec)[0]
    assert [] == refused
    ran = run(projected, template)
    assert 0 == ran.returncode
    assert f"events=6 written=4 refused=1 output={template}" == ran.stdout.splitlines()[-1]
    assert f"refused UNSUPPORTED_SHAPE shop/{projected.raw}/0/1: upsert: the table's key is unknown" in ran.stderr
    for table, records in (("t", one), ("u", other)):
        (found,) = written(projected, f"{projected.name}-t.shop.shop.{table}").values()
        assert together([records]) == found


def test_what_somebody_else_wrote(projected: Bench) -> None:
    """Older events must never follow records of the service, neither at first nor later."""
    topic = f"{projected.name}-debezium"
    projected.feed([row(1)])
    projected.serve()
    translated(projected, JsonCodec())
    assert 0 == run(projected, topic).returncode
    projected.feed([b"of the service"], topic=topic)
    projected.serve()
    before = len(projected.read(topic))
    ran = run(projected, topic)
    assert 2 == ran.returncode
    assert "already contains records from the service or from an incomplete run" in ran.stderr
    assert before == len(projected.read(topic))


def test_what_comes_meanwhile(projected: Bench) -> None:
    """Events that arrive meanwhile are left to the next run. Another writer of the projection is detected."""
    template = projected.document["projections"][1]["topic"]
    projected.feed([row(2).replace(b'["id"]', b"null"), row(1)])
    projected.serve()
    translated(projected, JsonCodec())
    settings = settings_module.load(projected.config)

    def during(act: Callable[[], None]) -> Any:
        return project(settings, template, print, lambda message, error: act())

    assert {"events": 4, "written": 2, "refused": 1} == during(projected.serve).counts
    assert {"events": 4, "written": 2, "refused": 1} == during(lambda: None).counts
    projected.serve()
    topic = f"{projected.name}-t.shop.shop.t"
    with pytest.raises(
        FatalError, match="contains 7 records, but this command wrote 6, so the service must also be writing to it"
    ):
        during(lambda: projected.feed([b"of the service"], topic=topic))


def test_no_such_projection(projected: Bench) -> None:
    ran = run(projected, "elsewhere")
    assert 2 == ran.returncode
    assert "unknown projection" in ran.stderr
