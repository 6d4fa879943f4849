"""Table schemas in a registry: awaited before any part of a message is written, and rejected for one output only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.translator.service._pipeline import CANAL_ROW, PARTITION, PROJECTED, Bench, Record, record, soon
from translator.codecs import Framing, build
from translator.codecs.avro import AvroCodec, confluent_header
from translator.codecs.debezium_avro import DebeziumAvroCodec
from translator.codecs.registered import TableSchemas
from translator.config.settings import Settings
from translator.errors import ConfigError, RetryableError
from translator.kafka.registered_schemas import ASK_AGAIN, RegisteredSchemas
from translator.kafka.schema_registry import SchemaRefused
from translator.resolution.builders import build_codecs
from translator.service import metadata_wait


class Registry:
    """Answers in turn. The last one repeats forever."""

    def __init__(self, *answers: int | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def schema_id(self, subject: str, schema_text: str) -> int:
        self.asked.append(subject)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make(registry: Registry, clock: Callable[[], float] = Clock()) -> Bench:  # noqa: B008  # nobody moves it
    schemas = RegisteredSchemas(registry, clock)  # type: ignore[arg-type]  # the part of it that is used
    codec = DebeziumAvroCodec(TableSchemas(schemas.id_of, lambda event: f"t.{event.table}"))
    return Bench("canal", {"avro": codec}, options={"profile": "oss"}, register=schemas.register)


def routed(registry: Registry) -> Bench:
    """A projection with codec avro and one topic per table."""
    schemas = RegisteredSchemas(registry)  # type: ignore[arg-type]  # the part of it that is used
    framing = Framing(tables=TableSchemas(schemas.id_of, lambda event: f"t.{event.table}"), routed=True)
    return Bench("canal", {"avro": build("avro", {}, framing)}, options={"profile": "oss"}, register=schemas.register)


def rows(*tables: str) -> list[Record]:
    return [record(offset, CANAL_ROW | {"table": table}) for offset, table in enumerate(tables)]


def ids(bench: Bench) -> list[tuple[int, int]]:
    """Return the ids in keys and values of the projection."""
    found = bench.projected("avro", PROJECTED)
    return [tuple(int.from_bytes(part[1:5], "big") for part in (one.key(), one.value())) for one in found]  # type: ignore[misc]


def refusals(bench: Bench) -> list[tuple[str, str]]:
    """Return the output and reason of the dead letters."""
    heads = [dict(letter.headers()) for letter in bench.read(bench.output.dead_letter_topic, PARTITION)]
    return [(head["cdc-error-output"].decode(), head["cdc-error-message"].decode()) for head in heads]


def test_each_schema_is_asked_for_once() -> None:
    """Ids are requested in message order and remembered."""
    registry = Registry(4, 5, 6, 7)
    bench = make(registry)
    asyncio.run(bench.run(rows("t", "t", "u", "t")))
    assert ["t.t-key", "t.t-value", "t.u-key", "t.u-value"] == registry.asked
    assert [(4, 5), (4, 5), (6, 7), (4, 5)] == ids(bench)
    assert 4 == len(bench.read(bench.output.topic, PARTITION))


def test_a_registry_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that, no part of the message is written to any output, and nothing is lost."""
    monkeypatch.setattr(metadata_wait, "_FIRST_PAUSE", 0.001)
    registry = Registry(*[RetryableError("Connection refused")] * 3, 4, 5)
    bench = make(registry)
    asyncio.run(bench.run(rows("t", "t")))
    assert [(4, 5), (4, 5)] == ids(bench)
    assert 2 == len(bench.read(bench.output.topic, PARTITION))
    assert "waiting for the schema registry to return an id under t.t-key: Connection refused" == bench.said[0]


def test_a_wait_ends_when_the_partition_is_given_away() -> None:
    """The partition's next owner waits then."""
    bench = make(Registry(RetryableError("Connection refused")))

    async def steps() -> None:
        waiting = asyncio.create_task(bench.process(3, rows("t")))
        await soon(lambda: bool(bench.said))
        bench.pipeline.cancel_waits()
        assert not await waiting

    asyncio.run(steps())
    assert [] == bench.read(bench.output.topic, PARTITION)


def test_a_refused_schema_is_missing_there_alone() -> None:
    """The other outputs have the message, a dead letter has the registry's message, and other tables continue."""
    registry = Registry(4, SchemaRefused("status 409 for subject t.t-value: 'no'"), 6, 7)
    bench = make(registry)
    asyncio.run(bench.run(rows("t", "t", "u")))
    assert [(6, 7)] == ids(bench)
    assert 3 == len(bench.read(bench.output.topic, PARTITION))
    assert 2 == len(refusals(bench))
    assert {"out.avro"} == {output for output, _ in refusals(bench)}
    assert all("status 409 for subject t.t-value" in reason for _, reason in refusals(bench))


def test_a_refused_schema_is_asked_for_again() -> None:
    """It is requested again after a while, because the operator may have changed the subject's rules."""
    clock = Clock()
    registry = Registry(4, SchemaRefused("status 409"), 5)
    bench = make(registry, clock)
    asyncio.run(bench.run(rows("t")))
    assert [] == ids(bench)
    clock.now += ASK_AGAIN
    asyncio.run(bench.run([record(1, CANAL_ROW)]))
    assert [(4, 5)] == ids(bench)


class TestEnvelopesByTable:
    """With codec avro and a topic per table, the envelope is registered under a subject for each topic."""

    def test_each_topic_has_its_subject(self) -> None:
        """The schema is registered once, at the first event of a table."""
        registry = Registry(4, 5)
        bench = routed(registry)
        asyncio.run(bench.run(rows("t", "u", "t")))
        assert ["t.t-value", "t.u-value"] == registry.asked
        found = [one.value() for one in bench.projected("avro", PROJECTED)]
        assert [4, 5, 4] == [int.from_bytes(value[1:5], "big") for value in found]
        tables = [
            AvroCodec(confluent_header(of)).decode(value).table for of, value in zip((4, 5, 4), found, strict=True)
        ]
        assert ["t", "u", "t"] == tables

    def test_a_subject_of_something_else(self) -> None:
        """The message is missing in this projection only."""
        bench = routed(Registry(SchemaRefused("status 409 for subject t.t-value: 'no'")))
        asyncio.run(bench.run(rows("t")))
        assert [] == bench.projected("avro", PROJECTED)
        assert 1 == len(bench.read(bench.output.topic, PARTITION))
        assert ["out.avro"] == [output for output, _ in refusals(bench)]


def test_the_setting_of_the_registry() -> None:
    """A codec with schemas in a registry can be built if the settings contain a registry, and is rejected otherwise."""
    document = {
        "kafka": {"bootstrap_servers": "b:1"},
        "sources": [{"name": "src", "topics": ["raw"], "dialect": "canal", "options": {"profile": "oss"}}],
        "projections": [{"topic": "p", "codec": "debezium_avro"}],
    }
    codecs = build_codecs(Settings.model_validate({**document, "registry": {"url": "http://registry:8081"}}))
    assert isinstance(codecs["p"], DebeziumAvroCodec)
    with pytest.raises(ConfigError, match=r"debezium_avro requires a schema registry; set registry\.url"):
        build_codecs(Settings.model_validate(document))
