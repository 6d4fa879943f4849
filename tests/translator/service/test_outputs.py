"""With several outputs, each gets the same stream, all of a message or nothing, with one acknowledgement."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from cdc_core.envelope import ChangeEvent, TableSchema
from tests.translator.service._pipeline import CANAL_ROW, PARTITION, PROJECTED, Bench, Record, record
from translator.codecs import Codec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record as OutRecord
from translator.errors import ErrorCode, MessageError


class RowsOnly:
    """A codec with two records for a row and none for anything else."""

    name = "json"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[OutRecord]:
        if event.kind != "row":
            return []
        return [OutRecord(event.id.encode(), (event.op or "").encode(), []), OutRecord(event.id.encode(), None, [])]


class NoRows:
    """A codec that rejects rows."""

    name = "json"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[OutRecord]:
        if event.kind == "row":
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, "no rows")
        return []


DDL = CANAL_ROW | {"type": "ALTER", "isDdl": True, "sql": "ALTER TABLE t ADD c INT", "data": None}


def test_a_projection_gets_the_same_stream() -> None:
    """Every output has its codec's records in raw order, in a partition based on its own number of partitions."""
    bench = Bench("canal", {"rows": RowsOnly(), "same": JsonCodec()})
    asyncio.run(bench.run([record(0, CANAL_ROW), record(1, DDL), Record(2, b"{]"), record(3, CANAL_ROW)]))
    canonical = [event.value() for event in bench.read(bench.output.topic, PARTITION)]
    assert ["row", "schema", "row"] == [json.loads(value)["kind"] for value in canonical]
    assert canonical == [event.value() for event in bench.projected("same", PROJECTED)]
    first, last = b"src/raw/3/0/0", b"src/raw/3/3/0"
    found = [(row.key(), row.value()) for row in bench.projected("rows", PROJECTED)]
    assert [(first, b"c"), (first, None), (last, b"c"), (last, None)] == found
    assert 1 == len(bench.read(bench.output.dead_letter_topic, PARTITION)), "one dead letter, whatever the outputs are"
    (account,) = bench.accounted
    assert (4, 3, 1) == (account.records, account.translated, account.dead.total())
    assert {"c": 2, "schema": 1} == account.events
    written = {topic.removeprefix(bench.output.topic): count for topic, count in account.written.items()}
    assert {"": 3, ".rows": 4, ".same": 3} == written


LARGE = CANAL_ROW | {"data": [{"id": "1", "name": "x" * 500}]}


@pytest.mark.parametrize(
    ("projections", "limits", "code"),
    [
        ({"same": JsonCodec(), "odd": JsonCodec()}, {"odd": 1500}, b"TOO_LARGE"),
        ({"same": JsonCodec(), "odd": NoRows()}, {}, b"UNSUPPORTED_SHAPE"),
    ],
    ids=["size", "refusal"],
)
def test_what_a_projection_cannot_take_is_missing_there_alone(
    projections: Mapping[str, Codec], limits: Mapping[str, int], code: bytes
) -> None:
    """The message is translated, and also a dead letter that names the projection."""
    bench = Bench("canal", projections, limits)
    odd = f"{bench.output.topic}.odd"
    asyncio.run(bench.run([record(0, LARGE), record(1, DDL)]))
    (letter,) = bench.read(bench.output.dead_letter_topic, PARTITION)
    headers = dict(letter.headers())
    assert (code, odd.encode(), b"0") == tuple(
        headers[name] for name in ("cdc-error-code", "cdc-error-output", "cdc-origin-offset")
    )
    for topic, partition in ((bench.output.topic, PARTITION), (f"{bench.output.topic}.same", PROJECTED)):
        assert [0, 1] == [json.loads(event.value())["origin"]["offset"] for event in bench.read(topic, partition)]
    assert [] == [row for row in bench.read(odd, PROJECTED) if b'"offset":0' in row.value()]
    assert 1 == len(bench.read(bench.output.schemas_topic, 0))
    (account,) = bench.accounted
    assert (2, 2, 0) == (account.records, account.translated, account.dead.total())
    assert {(odd, code.decode()): 1} == account.refused


def test_what_the_canonical_topic_cannot_take_is_nowhere() -> None:
    """No output has the message or a schema of it. It is one dead letter that names no output."""
    bench = Bench("canal", {"same": JsonCodec()}, {"": 1500})
    asyncio.run(bench.run([record(0, LARGE), record(1, DDL)]))
    (letter,) = bench.read(bench.output.dead_letter_topic, PARTITION)
    headers = dict(letter.headers())
    assert b"TOO_LARGE" == headers["cdc-error-code"]
    assert "cdc-error-output" not in headers
    for topic, partition in ((bench.output.topic, PARTITION), (f"{bench.output.topic}.same", PROJECTED)):
        assert [1] == [json.loads(event.value())["origin"]["offset"] for event in bench.read(topic, partition)]
    assert [] == bench.read(bench.output.schemas_topic, 0)
    (account,) = bench.accounted
    assert (2, 1, {"TOO_LARGE": 1}, {}) == (account.records, account.translated, account.dead, account.refused)


def test_a_batch_is_acknowledged_when_every_output_has_it() -> None:
    """Delivery reports of a projection count like those of the canonical topic."""
    bench = Bench("canal", {"same": JsonCodec()})
    bench.delivery.withhold("out.same")

    async def scenario() -> None:
        await bench.process(3, [record(0, CANAL_ROW)])
        await bench.withheld("out.same", 1)
        bench.delivery.reap()
        assert 1 == len(bench.read(bench.output.topic, PARTITION))
        assert [] == bench.accounted
        bench.delivery.release("out.same")
        await bench.acknowledged(1)

    asyncio.run(scenario())
