"""Names, schemas and metadata come from messages, so a source can only add a limited number of them."""

import asyncio
import json

import pytest

from tests.translator.commands.test_learn import metadata
from tests.translator.service._pipeline import CANAL_ROW, PARTITION, Bench, record
from translator.codecs.json import JsonCodec
from translator.config.topic_template import TopicTemplate
from translator.message import Limits
from translator.resolution.routes import Routes


def codes(bench: Bench) -> list[tuple[int, str]]:
    """Return the raw offset and the code of each dead letter."""
    headers = [dict(letter.headers()) for letter in bench.read(bench.output.dead_letter_topic, PARTITION)]
    return [(int(found["cdc-origin-offset"]), found["cdc-error-code"].decode()) for found in headers]


def offsets(bench: Bench) -> list[int]:
    return [json.loads(event.value())["origin"]["offset"] for event in bench.read(bench.output.topic, PARTITION)]


def test_schemas() -> None:
    """Known schemas stay usable, and messages with a further one are dead letters, also after a restart."""
    bench = Bench("canal", allowed=Limits(schemas=2))
    tables = [CANAL_ROW | {"table": name} for name in ("a", "b", "c", "a", "c", "b")]
    asyncio.run(bench.run([record(offset, table) for offset, table in enumerate(tables)]))
    assert [0, 1, 3, 5] == offsets(bench)
    assert [(2, "LIMIT_EXCEEDED"), (4, "LIMIT_EXCEEDED")] == codes(bench)
    schemas = bench.read(bench.output.schemas_topic, 0)
    assert 2 == len(schemas)
    again = Bench("canal", allowed=Limits(schemas=2))
    for schema in schemas:
        again.catalog.announced(schema.key().decode())
    asyncio.run(again.run([record(offset, table) for offset, table in enumerate(tables)]))
    assert [0, 1, 3, 5] == offsets(again)


def test_a_source_has_its_own_count() -> None:
    """Schemas of other sources do not count, and a schema that is announced twice counts once."""
    bench = Bench("canal", allowed=Limits(schemas=1))
    for key in ("other/shop//t/1", "other/shop//t/2"):
        bench.catalog.announced(key)
    asyncio.run(bench.run([record(0, CANAL_ROW), record(1, CANAL_ROW)]))
    (schema,) = bench.read(bench.output.schemas_topic, 0)
    bench.catalog.announced(schema.key().decode())
    asyncio.run(bench.run([record(2, CANAL_ROW), record(3, CANAL_ROW | {"table": "second"})]))
    assert ([0, 1, 2], [(3, "LIMIT_EXCEEDED")]) == (offsets(bench), codes(bench))


def test_metadata() -> None:
    """A document that replaces another one counts once. Further ones are dead letters and are not learned."""
    values = [metadata("A1", "EMP", 1), metadata("A1", "EMP", 2), metadata("B2", "DEPT", 1)]
    batch = [record(offset, json.loads(value)) for offset, value in enumerate(values)]
    free = Bench("qlik")
    asyncio.run(free.run(batch))
    sizes = [len(free.catalog.document("src", key) or b"") for key in ("A1", "B2")]
    bench = Bench("qlik", allowed=Limits(metadata_bytes=sum(sizes) - 1))
    asyncio.run(bench.run(batch))
    assert [(2, "LIMIT_EXCEEDED")] == codes(bench)
    assert bench.catalog.document("src", "A1") is not None
    assert bench.catalog.document("src", "B2") is None


@pytest.mark.parametrize("allowed", [2, 3])
def test_topics_of_a_projection(allowed: int) -> None:
    """Tables beyond the limit are missing from the projection only."""
    opened: list[str] = []

    def open_topic(topic: str) -> int:
        opened.append(topic)
        return 3

    template = TopicTemplate.parse("tables.{source}.{table}")
    names = ("a", "b", "c")
    bench = Bench(
        "canal",
        {"p": JsonCodec()},
        tables={f"tables.src.shop.{name}": 3 for name in names},
        routes={"p": Routes(template, open_topic, allowed)},
    )
    asyncio.run(bench.run([record(offset, CANAL_ROW | {"table": name}) for offset, name in enumerate(names * 2)]))
    assert [0, 1, 2, 3, 4, 5] == offsets(bench)
    assert [f"tables.src.shop.{name}" for name in names[:allowed]] == opened
    missing = [] if allowed == 3 else [(2, "TOPIC_REFUSED"), (5, "TOPIC_REFUSED")]
    assert missing == codes(bench)
