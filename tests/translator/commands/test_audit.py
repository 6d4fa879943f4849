"""`translator audit` on the real broker reports lost, repeated, changed and invented records."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from dev.servers.broker import Broker
from tests.translator.commands._bench import TIMES, Bench, row
from translator.codecs.record import Record
from translator.errors import ErrorCode
from translator.message import Message
from translator.translation.dead_letter import DeadLetter, dead_letter_record


def audited(shop: Bench, *arguments: str) -> tuple[int, Any]:
    ran = shop.run("audit", "--json", *arguments)
    assert ran.returncode in (0, 1), ran.stderr
    assert ran.stdout, ran.stderr  # also the exit code when no broker answers
    return ran.returncode, json.loads(ran.stdout)


def account(report: Any, partition: int = 0) -> Any:
    (found,) = [account for account in report["accounts"] if account["partition"] == partition]
    return found


def fates(account: Any) -> dict[str, Any]:
    return {name: account[name] for name in ("records", "translated", "dead", "skipped", "learned")}


def test_all_is_there(shop: Bench) -> None:
    """Each record is accounted for: events, a dead letter with its code, or a reason to skip it."""
    shop.feed([row(1), None, b"{]", row(2)])
    shop.feed([row(3)], 1)
    shop.serve()
    code, report = audited(shop)
    assert 0 == code
    wanted = {"records": 4, "translated": 2, "dead": {"MALFORMED_JSON": 1}, "skipped": {"tombstone": 1}, "learned": 0}
    assert wanted == fates(account(report))
    assert (4, 0, 0, 0) == tuple(account(report)[name] for name in ("events", "duplicates", "different", "misplaced"))
    assert {"records": 1, "translated": 1, "dead": {}, "skipped": {}, "learned": 0} == fates(account(report, 1))


def test_tables_that_the_topic_does_not_get(broker: Broker, tmp_path: Path) -> None:
    """A message with only excluded tables is translated without an event. Only included tables can miss events."""
    output = {"topic": "", "exclude": [{"table": "shop.u"}]}
    options = {"profile": "oss", "newline_batches": True}
    both = row(3, "u") + b"\n" + row(4)
    shop = Bench(broker.bootstrap, tmp_path)
    try:
        (source,) = shop.document["sources"]
        output["topic"] = shop.canonical
        shop.document |= {"output": output, "sources": [{**source, "options": options}]}
        shop.config.write_text(yaml.safe_dump(shop.document))
        shop.feed([row(1), row(2, "u"), both, b"{]"])
        shop.serve()
        code, report = audited(shop)
        wanted = {"records": 4, "translated": 3, "dead": {"MALFORMED_JSON": 1}, "skipped": {}, "learned": 0}
        assert (0, wanted, 4, 0) == (
            code,
            fates(account(report)),
            account(report)["events"],
            account(report)["different"],
        )
        explained = shop.run("explain", shop.raw, "0", "2").stdout
    finally:
        shop.close()
    lines = [line for line in explained.splitlines() if line.startswith("event ")]
    assert [f"event {n}: row shop.u, not written to the topic because its table is excluded" for n in (0, 1)] == lines[
        :2
    ]
    assert ["event 2: row shop.t", "event 3: row shop.t"] == [line.partition(",")[0] for line in lines[2:]]


def test_a_table_for_people(shop: Bench) -> None:
    """Without --json, it prints a line for each raw partition, the reasons and the total."""
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
        (row(2), lambda _: [], "it has neither events nor a dead letter; translating it now results in 2 events"),
        (row(2), lambda records: records[:1], "1 of its events are missing; the first is n=1"),
        (row(2), lambda records: records[1:], "1 of its events are missing; the first is n=0"),
        (
            b"{]",
            lambda _: [],
            "it has neither events nor a dead letter; translating it now results in a dead letter MALFORMED_JSON",
        ),
    ],
    ids=["all events", "the last event", "the first event", "a dead letter"],
)
def test_what_is_lost(shop: Bench, value: bytes, gone: Any, what: str) -> None:
    """A record with missing events is listed, and the exit code is 1."""
    shop.feed([row(1), value, row(3)])
    shop.serve(lambda message, records: gone(records) if message.offset == 1 else records)
    code, report = audited(shop)
    assert 1 == code
    assert {"count": 1, "first": [{"offset": 1, "what": what}]} == account(report)["lost"]
    assert 2 == account(report)["translated"]
    assert f"{shop.raw}/0: LOST offset 1: {what}" in shop.run("audit").stdout


def test_many_that_are_lost(shop: Bench) -> None:
    """The first ten are listed, and all are counted."""
    shop.feed([row(number) for number in range(1, 31)])
    shop.serve(lambda _message, _records: [])
    code, report = audited(shop)
    lost = account(report)["lost"]
    assert (1, 30, list(range(10))) == (code, lost["count"], [finding["offset"] for finding in lost["first"]])


def test_what_was_written_again(shop: Bench) -> None:
    """Duplicates are counted, those with other bytes separately. Only --strict makes the latter an error."""
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
    """Events that translating now does not produce are counted separately, and the record counts as translated."""
    shop.feed([row(1), b"{]"])

    def write(message: Message, records: list[Record]) -> list[Record]:
        return [Record(None, b"older", records[0].headers), records[1]] if len(records) == 2 else records

    shop.serve(write)
    code, report = audited(shop)
    assert (0, 1, 1) == (code, account(report)["translated"], account(report)["different"])


def test_what_is_invented(shop: Bench) -> None:
    """Events beyond the end, of a missing partition or without an id lead to exit code 1."""
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


def in_transaction(shop: Bench, value: bytes, *, commit: bool) -> None:
    producer = Producer({**shop.client, "transactional.id": shop.name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(shop.raw, value, b"k", partition=0)
    producer.flush(20)
    (producer.commit_transaction if commit else producer.abort_transaction)(20)


def test_gaps_are_no_loss(shop: Bench) -> None:
    """Offsets of markers and aborted transactions contain no record, so an event of one is invented."""
    in_transaction(shop, row(1), commit=True)
    in_transaction(shop, row(2), commit=False)
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
    assert [{"offset": 2, "what": "no raw record exists there"}] == account(report)["invented"]["first"]


def test_only_what_is_committed(shop: Bench) -> None:
    """Uncommitted records may still follow. An explicit range is checked regardless of commits."""
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
    """The record is translated, and reported as both."""
    shop.feed([row(1)])
    shop.serve()
    message = Message(shop.raw, 0, 0, TIMES, None, row(1))
    letter = dead_letter_record(message, DeadLetter(ErrorCode.SCHEMA_MISSING, "s"), "shop", "0", 1_000_000)
    shop.feed([row(1)], shop.read(shop.canonical)[0].partition(), shop.dead_letters, letter.headers)
    code, report = audited(shop)
    assert (0, 1, 1, {}) == (code, *(account(report)[name] for name in ("translated", "revived", "dead")))


def test_a_message_that_was_a_dead_letter_before(shop: Bench) -> None:
    """Dead-letter headers that came with the message, needed only by a projection, do not count as ours."""
    of_old = DeadLetter(ErrorCode.UNSUPPORTED_SHAPE, "of old")
    old = dead_letter_record(Message("old", 0, 5, 0, None, b"{]"), of_old, "other", "0", 1_000_000, "projection")
    shop.feed([b"{]"], headers=old.headers)
    shop.serve()
    code, report = audited(shop)
    assert (0, {"MALFORMED_JSON": 1}) == (code, account(report)["dead"]), account(report)["lost"]


def test_a_letter_of_a_projection(shop: Bench) -> None:
    """A projection's letter does not make the message dead, so the record is lost if its events are. Anything that is
    not a letter is reported.
    """
    shop.feed([row(1)])
    shop.serve(lambda _message, _records: [])
    refused = DeadLetter(ErrorCode.TOO_LARGE, "t")
    letter = dead_letter_record(Message(shop.raw, 0, 0, TIMES, None, row(1)), refused, "shop", "0", 1_000_000, "beside")
    shop.feed([row(1)], 0, shop.dead_letters, letter.headers)
    shop.feed([row(1)], 0, shop.dead_letters, letter.headers[1:])
    code, report = audited(shop)
    assert (1, 1, {}) == (code, account(report)["lost"]["count"], account(report)["dead"])
    assert f"{shop.dead_letters}/0 refers to no raw record" == report["nameless"]["first"][0]["what"]


def test_what_compaction_took(shop: Bench) -> None:
    """An event without its raw record is not invented if Kafka may have removed the record."""
    alteration = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, shop.raw, incremental_configs=[alteration])
    shop.admin.incremental_alter_configs([topic])[topic].result(20)
    in_transaction(shop, row(2), commit=False)
    shop.feed([row(1)], key=b"k")
    shop.serve()
    place = shop.read(shop.canonical)[0].partition()
    shop.feed([b"?"], place, shop.canonical, [("cdc-id", f"shop/{shop.raw}/0/0/0".encode())])
    code, report = audited(shop)
    assert (0, 1, 0) == (code, account(report)["compacted"], account(report)["invented"]["count"])
    assert f"{shop.raw}/0: compacted=1" in shop.run("audit").stdout.splitlines()


def test_what_lies_in_another_partition(shop: Bench) -> None:
    """If the canonical topic got more partitions, the record is translated and counted as misplaced."""
    shop.feed([row(1), row(2)])
    shop.serve(lambda message, records: records if message.offset else [])
    elsewhere = (shop.read(shop.canonical)[0].partition() + 1) % 3
    for n in range(2):
        shop.feed([b"?"], elsewhere, shop.canonical, [("cdc-id", f"shop/{shop.raw}/0/0/{n}".encode())])
    code, report = audited(shop)
    assert (0, 2, 1) == (code, *(account(report)[name] for name in ("translated", "misplaced")))


def test_a_beginning_that_was_deleted(shop: Bench) -> None:
    """The missing records count as lost, and a warning states the topic that lacks them."""
    shop.feed([row(1), row(2)])
    shop.serve()
    place = TopicPartition(shop.canonical, shop.read(shop.canonical)[0].partition(), 2)
    shop.admin.delete_records([place])[place].result(20)
    code, report = audited(shop)
    assert [f"{shop.canonical}/{place.partition} begins at offset 2"] == report["short"]
    assert (1, [0]) == (code, [finding["offset"] for finding in account(report)["lost"]["first"]])
    assert f"{report['short'][0]}; records deleted before that point are counted as lost" in shop.run("audit").stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--partition", "0"], "--partition requires --topic"),
        (["--from", "0"], "--from and --to require --topic and --partition"),
        (["--topic", "elsewhere"], "unknown raw topic 'elsewhere'"),
        (["--topic", "RAW", "--partition", "0", "--to", "9"], "/0 has no offset 8; it has 0 to 0"),
        (["--topic", "RAW", "--partition", "9"], "has no partition 9"),
    ],
)
def test_a_wrong_range(shop: Bench, arguments: list[str], reason: str) -> None:
    """A bad range is rejected with exit code 2."""
    shop.feed([row(1)])
    ran = shop.run("audit", *(shop.raw if argument == "RAW" else argument for argument in arguments))
    assert (2, True) == (ran.returncode, reason in ran.stderr), ran.stderr
