"""A batch of one partition: what is written, in which order, and how it is accounted for."""

import asyncio
import json
import time

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, Record, record, soon
from translator.service.message_context import account_for

METADATA = {
    "magic": "atMSG",
    "type": "MD",
    "headers": None,
    "messageSchemaId": "A1",
    "messageSchema": None,
    "message": {
        "schemaId": "A1",
        "lineage": {
            "server": "s",
            "task": "t",
            "schema": "HR",
            "table": "EMP",
            "tableVersion": 1,
            "timestamp": "2026-01-01T00:00:00.000",
        },
        "tableStructure": {
            "tableColumns": {
                "ID": {
                    "ordinal": 1,
                    "type": "INT4",
                    "length": 10,
                    "precision": 0,
                    "scale": 0,
                    "primaryKeyPosition": 1,
                    "nullable": False,
                }
            }
        },
        "dataSchema": "{}",
    },
}
QLIK_ROW = {
    "magic": "atMSG",
    "type": "DT",
    "headers": None,
    "messageSchemaId": "A1",
    "messageSchema": None,
    "message": {
        "data": {"ID": 1},
        "beforeData": None,
        "headers": {
            "operation": "REFRESH",
            "changeSequence": "",
            "timestamp": "",
            "streamPosition": "",
            "transactionId": "",
            "changeMask": None,
            "columnMask": None,
        },
    },
}


@pytest.fixture
def canal() -> Bench:
    return Bench("canal")


@pytest.fixture
def qlik() -> Bench:
    return Bench("qlik")


def test_events_dead_letters_and_schemas_go_where_they_should(canal: Bench) -> None:
    """Events and dead letters of a raw partition go to one partition. A schema is written once."""
    asyncio.run(canal.run([record(0, CANAL_ROW), Record(1, b"{]"), Record(2, None), record(3, CANAL_ROW)]))
    events = canal.read(canal.output.topic, PARTITION)
    assert [0, 3] == [json.loads(event.value())["origin"]["offset"] for event in events]
    (letter,) = canal.read(canal.output.dead_letter_topic, PARTITION)
    assert b"MALFORMED_JSON" == dict(letter.headers())["cdc-error-code"]
    (schema,) = canal.read(canal.output.schemas_topic, 0)
    assert json.loads(events[0].value())["schema_id"] == json.loads(schema.value())["id"]
    (account,) = canal.accounted
    assert (4, 2, 1, 1, 0) == (
        account.records,
        account.translated,
        account.dead.total(),
        account.skipped.total(),
        account.learned,
    )


def test_an_event_too_large_for_the_topic_is_a_dead_letter() -> None:
    """Size is checked before any part of a message is written. The dead letter keeps the SHA-256 of the body."""
    bench = Bench("canal", limits={"": 4000, "dlq": 4000})
    large = CANAL_ROW | {"data": [{"id": "1", "name": "x" * 5000}]}
    asyncio.run(bench.run([record(0, large)]))
    assert [] == bench.read(bench.output.topic, PARTITION)
    (letter,) = bench.read(bench.output.dead_letter_topic, PARTITION)
    found = dict(letter.headers())
    assert b"TOO_LARGE" == found["cdc-error-code"]
    assert letter.value() is None
    assert 64 == len(found["cdc-body-sha256"])


def test_metadata_is_learned_and_written_before_its_rows(qlik: Bench) -> None:
    """Metadata goes to the metadata topic, and the rows after it get its types."""
    asyncio.run(qlik.run([record(0, METADATA), record(1, QLIK_ROW)]))
    (learned,) = qlik.read(qlik.output.metadata_topic, 0)
    assert b"src/A1" == learned.key()
    (event,) = qlik.read(qlik.output.topic, PARTITION)
    assert "EMP" == json.loads(event.value())["table"]
    assert 1 == qlik.accounted[0].learned


def test_metadata_in_the_middle_of_a_long_batch(qlik: Bench) -> None:
    """More rows than fit in a step surround it. All are in order, and the metadata is learned once."""
    rows = [record(offset, QLIK_ROW) for offset in range(1, 100)]
    asyncio.run(qlik.run([record(0, METADATA), *rows[:49], record(50, METADATA), *rows[50:]]))
    found = [json.loads(event.value())["origin"]["offset"] for event in qlik.read(qlik.output.topic, PARTITION)]
    assert [*range(1, 50), *range(51, 100)] == found
    (account,) = qlik.accounted
    assert (100, 98, 2, {"r": 98}) == (account.records, account.translated, account.learned, account.events)


def test_a_message_waits_for_its_metadata(qlik: Bench) -> None:
    """Metadata that another process learns in time produces the event as if it had been known before."""
    qlik.waiter._seconds = 600

    async def scenario() -> None:
        waiting = asyncio.create_task(qlik.run([record(0, QLIK_ROW)]))
        await soon(lambda: qlik.waiter.waiting == 1)
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await qlik.run([record(1, METADATA)])
        await waiting

    asyncio.run(scenario())
    (event,) = qlik.read(qlik.output.topic, PARTITION)
    assert 0 == json.loads(event.value())["origin"]["offset"]


def test_metadata_that_does_not_come_is_waited_for_once(qlik: Bench) -> None:
    """After the time, the message is a dead letter SCHEMA_MISSING, and later ones of that id do not wait."""

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await qlik.run([record(offset, QLIK_ROW) for offset in range(50)])
        return loop.time() - started

    spent = asyncio.run(scenario())
    letters = qlik.read(qlik.output.dead_letter_topic, PARTITION)
    assert {b"SCHEMA_MISSING"} == {dict(letter.headers())["cdc-error-code"] for letter in letters}
    assert 50 == len(letters)
    assert spent < 50 * 1.0, "each message would have waited a second"


def test_metadata_too_large_for_its_topic_is_a_dead_letter() -> None:
    """If metadata cannot be sent to other processes, it is not learned here either, and the stream continues."""
    bench = Bench("qlik", limits={"metadata": 4000})
    large = json.loads(json.dumps(METADATA))
    large["message"]["dataSchema"] = json.dumps({"type": "record", "name": "x" * 5000, "fields": []})
    asyncio.run(bench.run([record(0, large), record(1, QLIK_ROW)]))
    letters = bench.read(bench.output.dead_letter_topic, PARTITION)
    assert [b"TOO_LARGE", b"SCHEMA_MISSING"] == [dict(letter.headers())["cdc-error-code"] for letter in letters]
    assert [] == bench.read(bench.output.metadata_topic, 0)


def test_the_times_of_a_batch(canal: Bench) -> None:
    """A batch is fetched, begun and sent. Its middle record represents it, also if a stop has shortened it."""
    batch = [Record(offset, json.dumps(CANAL_ROW).encode(), timestamp=1_000 + offset) for offset in range(5)]
    now = time.monotonic()
    assert asyncio.run(canal.pipeline.process("raw", 3, batch, lambda: None, fetched=now - 1))
    canal.delivery.reap()
    (account,) = canal.accounted
    assert now - 1 == account.fetched
    assert now <= account.begun < account.sent <= time.monotonic()
    assert 1_002 == account.middle_record_ms
    account_for(account, batch[:2])
    assert 1_001 == account.middle_record_ms
    account_for(account, [Record(9, None, timestamp=-1)])
    assert account.middle_record_ms is None
