"""`translator audit` on the real broker: what it says about records lost, repeated, changed or invented."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.translator.commands._bench import Bench, row
from translator.codecs.record import Record
from translator.message import Message


def audited(shop: Bench, *arguments: str) -> tuple[int, Any]:
    ran = shop.run("audit", "--json", *arguments)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def account(report: Any, partition: int = 0) -> Any:
    (found,) = [account for account in report["accounts"] if account["partition"] == partition]
    return found


def fates(account: Any) -> dict[str, Any]:
    return {name: account[name] for name in ("records", "translated", "dead", "skipped", "learned")}


def test_all_is_there(shop: Bench) -> None:
    """Each record has a fate: events, a dead letter with its code, or a reason to be skipped."""
    shop.feed([row(1), None, b"{]", row(2)])
    shop.feed([row(3)], 1)
    shop.serve()
    code, report = audited(shop)
    assert 0 == code
    wanted = {"records": 4, "translated": 2, "dead": {"MALFORMED_JSON": 1}, "skipped": {"tombstone": 1}, "learned": 0}
    assert wanted == fates(account(report))
    assert (4, 0, 0, 0) == tuple(account(report)[name] for name in ("events", "duplicates", "different", "misplaced"))
    assert {"records": 1, "translated": 1, "dead": {}, "skipped": {}, "learned": 0} == fates(account(report, 1))


def test_a_table_for_people(shop: Bench) -> None:
    """Without --json it prints a line per raw partition, reasons, and the sum."""
    shop.feed([row(1), None, b"{]"])
    shop.serve()
    ran = shop.run("audit")
    assert 0 == ran.returncode, ran.stderr
    lines = ran.stdout.splitlines()
    assert f"{shop.raw}/0: dead: MALFORMED_JSON=1" in lines
    assert f"{shop.raw}/0: skipped: tombstone=1" in lines
    assert lines[-1].startswith("records=3 translated=1 dead=1 skipped=1 learned=0 lost=0 events=2 duplicates=0 ")


@pytest.mark.parametrize(
    ("value", "gone", "what"),
    [
        (row(2), lambda _: [], "neither event nor dead letter; now it gives 2 events"),
        (row(2), lambda records: records[:1], "1 of its events, the first is n=1"),
        (row(2), lambda records: records[1:], "1 of its events, the first is n=0"),
        (b"{]", lambda _: [], "neither event nor dead letter; now a dead letter MALFORMED_JSON"),
    ],
    ids=["all events", "the last event", "the first event", "a dead letter"],
)
def test_what_is_lost(shop: Bench, value: bytes, gone: Any, what: str) -> None:
    """A record of which something is missing is named, and the exit code is 1."""
    shop.feed([row(1), value, row(3)])
    shop.serve(lambda message, records: gone(records) if message.offset == 1 else records)
    code, report = audited(shop)
    assert 1 == code
    assert {"count": 1, "first": [{"offset": 1, "what": what}]} == account(report)["lost"]
    assert 2 == account(report)["translated"]
    assert f"{shop.raw}/0: LOST offset 1: {what}" in shop.run("audit").stdout


def test_many_that_are_lost(shop: Bench) -> None:
    """The first ten are listed, all are counted."""
    shop.feed([row(number) for number in range(1, 31)])
    shop.serve(lambda _message, _records: [])
    code, report = audited(shop)
    lost = account(report)["lost"]
    assert (1, 30, list(range(10))) == (code, lost["count"], [finding["offset"] for finding in lost["first"]])


def test_what_was_written_again(shop: Bench) -> None:
    """Copies are counted; those with other bytes apart, and only --strict makes that an error."""
    shop.feed([row(1), row(2)])

    def write(message: Message, records: list[Record]) -> list[Record]:
        changed = Record(records[0].key, b"another", records[0].headers)
        return records * 3 if message.offset == 0 else [*records, changed]

    shop.serve(write)
    code, report = audited(shop)
    found = account(report)
    assert (0, 4, 5, 1, 1) == (code, *(found[name] for name in ("events", "duplicates", "unequal", "different")))
    assert 1 == audited(shop, "--strict")[0]


def test_what_another_release_wrote(shop: Bench) -> None:
    """Events that translating now does not give are counted apart, the record is translated."""
    shop.feed([row(1), b"{]"])

    def write(message: Message, records: list[Record]) -> list[Record]:
        return [Record(None, b"older", records[0].headers), records[1]] if len(records) == 2 else records

    shop.serve(write)
    code, report = audited(shop)
    assert (0, 1, 1) == (code, account(report)["translated"], account(report)["different"])


def test_what_is_invented(shop: Bench) -> None:
    """Events beyond the end, of a partition that is not there, or without a name: exit code 1."""
    shop.feed([row(1)])
    shop.serve()
    place = shop.read(shop.canonical)[0].partition()
    producer = Producer(shop.client)
    for identity in (f"shop/{shop.raw}/0/77/0", f"other/{shop.raw}/0/0/0"):
        producer.produce(shop.canonical, b"?", partition=place, headers=[("cdc-id", identity.encode())])
    producer.produce(shop.canonical, b"?", partition=place)
    producer.flush(20)
    code, report = audited(shop)
    assert 1 == code
    assert [77] == [finding["offset"] for finding in account(report)["invented"]["first"]]
    assert (1, 1) == (report["foreign"], report["nameless"]["count"])
    assert 0 == account(report)["lost"]["count"]


def test_gaps_are_no_loss(shop: Bench) -> None:
    """Offsets of markers and of aborted transactions hold no record; an event of one is invented."""
    producer = Producer({**shop.client, "transactional.id": shop.name})
    producer.init_transactions(20)
    for value, end in ((row(1), producer.commit_transaction), (row(2), producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(shop.raw, value, partition=0)
        producer.flush(20)
        end(20)
    shop.feed([row(3)])
    shop.serve()
    code, report = audited(shop)
    assert (0, 2, 5) == (code, account(report)["translated"], account(report)["end"])
    headers = [("cdc-id", f"shop/{shop.raw}/0/2/0".encode())]
    plain = Producer(shop.client)
    plain.produce(shop.canonical, b"?", partition=shop.read(shop.canonical)[0].partition(), headers=headers)
    plain.flush(20)
    code, report = audited(shop)
    assert 1 == code
    assert [{"offset": 2, "what": "no raw record lies there"}] == account(report)["invented"]["first"]


def test_only_what_is_committed(shop: Bench) -> None:
    """What the group has not committed may still come; a range that is asked for is checked whatever is committed."""
    shop.feed([row(1), row(2), row(3)])
    shop.serve(lambda message, records: records if message.offset < 2 else [])
    shop.commit(2)
    code, report = audited(shop)
    assert (0, 2) == (code, account(report)["records"])
    one = ("--topic", shop.raw, "--partition", "0")
    code, report = audited(shop, *one, "--to", "3")
    assert (1, 3, 1) == (code, account(report)["records"], account(report)["lost"]["count"])
    code, report = audited(shop, *one, "--from", "1", "--to", "2")
    assert (0, 1, 0) == (code, account(report)["records"], account(report)["invented"]["count"])


def test_a_dead_letter_that_was_replayed(shop: Bench) -> None:
    """Its record is translated, and said to be both."""
    shop.feed([row(1)])
    shop.serve()
    origin = [("cdc-origin-topic", shop.raw.encode()), ("cdc-origin-partition", b"0"), ("cdc-origin-offset", b"0")]
    ours: Any = [("cdc-error-source", b"shop"), ("cdc-error-code", b"SCHEMA_MISSING"), *origin]
    shop.feed([row(1)], shop.read(shop.canonical)[0].partition(), shop.dead_letters, ours)
    code, report = audited(shop)
    assert (0, 1, 1, {}) == (code, *(account(report)[name] for name in ("translated", "revived", "dead")))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--partition", "0"], "--partition needs --topic"),
        (["--from", "0"], "--from and --to need --topic and --partition"),
        (["--topic", "elsewhere"], "unknown raw topic 'elsewhere'"),
        (["--topic", "RAW", "--partition", "0", "--to", "9"], "there are 0 to 1"),
        (["--topic", "RAW", "--partition", "9"], "has no partition 9"),
    ],
)
def test_a_wrong_range(shop: Bench, arguments: list[str], reason: str) -> None:
    """It is refused with exit code 2."""
    shop.feed([row(1)])
    ran = shop.run("audit", *(shop.raw if argument == "RAW" else argument for argument in arguments))
    assert (2, True) == (ran.returncode, reason in ran.stderr), ran.stderr
