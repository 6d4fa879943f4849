"""The records of each output equal those of the plain path, and so do the events that the extension creates for outputs
that Python encodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from bench.steps.shop_updates import feed
from cdc_core.envelope import ChangeEvent, TableSchema
from tests.translator.dialects.case import opened
from tests.translator.native import dts_avro_mutants, needs_extension, qlik_mutants, shareplex_mutants
from tests.translator.native.canal_mutants import mutants, with_two_images
from tests.translator.native.test_equality import (
    CASES,
    DECLARED,
    KEYED,
    OFF,
    RESTARTED,
    ROOMY,
    agree,
    as_insert,
    registered,
)
from tests.translator.native.test_equality import opened_path as opened_by_arrival
from tests.translator.native.test_qlik import DECLARED as QLIK_TABLES
from tests.translator.native.test_qlik import NAMED, at, taught
from translator.codecs import Codec, Framing, build
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.codecs.registered import TableSchemas, unknown_id
from translator.dialects import build as build_dialect
from translator.message import Dialect, Limits, Message, Setup
from translator.translation.native_path import NativePath, native_path
from translator.translation.source_order import NativeOrder
from translator.translation.translate import Events, Translator

pytestmark = needs_extension


class _InPython:
    """A codec that the extension does not support."""

    name = "in_python"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        return [Record(None, msgspec.json.encode(event), [])]


OUTPUTS: dict[str, tuple[Codec, ...]] = {
    "in Python": (AvroCodec(), _InPython(), JsonCodec()),
    "json": (AvroCodec(), JsonCodec()),
    "upsert": (AvroCodec(), build("upsert", {}), DebeziumCodec()),
    "upsert columns": (AvroCodec(), DebeziumCodec(), build("upsert", {"key": "columns", "schema_block": True})),
    "debezium_avro": (AvroCodec(), registered("debezium_avro")),
    "canonical json": (JsonCodec(), DebeziumCodec(), build("upsert", {})),
    "two events": (build("avro", {"key_change": "two_events"}), registered("avro")),
}
"""The codecs of all outputs, canonical topic first."""


def _compare(translator: Translator, path: NativePath, message: Message, codecs: Sequence[Codec]) -> str:
    """Compare both paths' rows, events and records, and return the result for the message."""
    taken = agree(translator, path, message, codecs)
    if taken == "taken":
        (found,) = path.take([message])
        result = translator.translate(message)
        assert isinstance(result, Events)
        assert not isinstance(found, str)
        order = translator.order
        assert len(result.events) == found.rows
        if not found.events:  # the extension writes all outputs
            return taken
        assert result.events == [event if order is None else order.placed(event) for event in found.events]
    return taken


def _at(offset: int, value: bytes) -> Message:
    return Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc")


def _of_canal(seed: Random) -> Iterator[bytes]:
    sparse = [message.value or b"" for message in feed("canal", 12, 60).messages]
    return mutants(seed, [*sparse, *map(with_two_images, sparse)])


def _of_shareplex(seed: Random) -> Iterator[bytes]:
    messages = [message.value or b"" for message in feed("shareplex", 12, 60).messages]
    return shareplex_mutants.mutants(seed, [*messages, *map(as_insert, messages)])


SOURCES = {
    "canal": (lambda: build_dialect("canal", Setup("s", tables=KEYED), {"profile": "dts", **OFF}), _of_canal),
    "canal auto": (lambda: build_dialect("canal", Setup("s"), {"profile": "auto", **OFF}), _of_canal),
    "canal restarted": (
        lambda: build_dialect("canal", Setup("s"), {"profile": "dts", "instance": RESTARTED, **OFF}),
        _of_canal,
    ),
    "shareplex": (
        lambda: build_dialect("shareplex", Setup("s", tables=DECLARED["columns"]), {"preset": "dts"}),
        _of_shareplex,
    ),
    "dts_avro": (lambda: build_dialect("dts_avro", Setup("s"), {}), dts_avro_mutants.mutants),
}


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("name", SOURCES)
def test_mutants(name: str, outputs: str) -> None:
    make, generate = SOURCES[name]
    translator, path = opened_by_arrival(make(), codecs=OUTPUTS[outputs])
    sent = islice(generate(Random(name + outputs)), 4 * settings.default.max_examples)
    found = Counter(
        _compare(translator, path, _at(offset, value), OUTPUTS[outputs]) for offset, value in enumerate(sent)
    )
    assert found["taken"] > 0


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("order", [False, True], ids=["arrival", "native"])
def test_mutants_of_qlik(outputs: str, order: bool) -> None:
    *_, dialect = taught(QLIK_TABLES["key"], **NAMED)
    translator, path = _opened(dialect, OUTPUTS[outputs], order=order)
    sent = islice(qlik_mutants.messages(Random(outputs)), 4 * settings.default.max_examples)
    found = Counter(
        _compare(translator, path, at(offset, *message), OUTPUTS[outputs]) for offset, message in enumerate(sent)
    )
    assert found["taken"] > 0


def _opened(dialect: Dialect, codecs: Sequence[Codec], *, order: bool) -> tuple[Translator, NativePath]:
    epochs = [datetime(2026, 1, 1, tzinfo=UTC)]
    translator = Translator("s", dialect, Limits(), NativeOrder("s", dialect, epochs, "task") if order else None)
    path = native_path(translator, [(codec, ROOMY) for codec in codecs])
    assert isinstance(path, NativePath), path
    return translator, path


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_golden_cases(case: Any, outputs: str) -> None:
    dialect, message = opened(case)
    translator = Translator("source", dialect, Limits())
    path = native_path(translator, [(codec, ROOMY) for codec in OUTPUTS[outputs]])
    if isinstance(path, NativePath):
        _compare(translator, path, message, OUTPUTS[outputs])
    else:
        assert "options" in path or "check" in path


@pytest.mark.parametrize("outputs", ["in Python", "json", "canonical json", "two events"])
@pytest.mark.parametrize("dialect", ["canal", "dts_avro", "qlik"])
def test_common_messages_are_taken(dialect: str, outputs: str) -> None:
    given = feed(dialect, 12, 200)
    translator, path = opened_by_arrival(given.dialect, codecs=OUTPUTS[outputs])
    assert {agree(translator, path, message, OUTPUTS[outputs]) for message in given.messages} == {"taken"}


def test_nothing_is_made_that_no_output_needs() -> None:
    """If the extension writes all outputs, it creates no events."""
    given = feed("canal", 12, 1)
    _, path = opened_by_arrival(given.dialect, codecs=(AvroCodec(), DebeziumCodec(), JsonCodec()))
    (taken,) = path.take(given.messages)
    assert not isinstance(taken, str)
    assert ([], 3) == (taken.events, len(taken.outputs))


class _Rejecting:
    """A codec that accepts only events with even offsets."""

    name = "rejecting"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        if event.origin.offset % 2:
            raise ValueError(event.id)
        return [Record(None, event.id.encode(), [])]


def test_an_event_that_an_output_rejects() -> None:
    """Its message takes the plain path, and the messages around it do not."""
    given = feed("canal", 12, 4)
    codecs = (AvroCodec(), _Rejecting(), DebeziumCodec())
    _, path = opened_by_arrival(given.dialect, codecs=codecs)
    messages = [msgspec.structs.replace(message, offset=n) for n, message in enumerate(given.messages)]
    taken = path.take(messages)
    assert ["projection", "projection"] == list(taken[1::2])
    for message, found in zip(messages[::2], taken[::2], strict=True):
        assert not isinstance(found, str)
        assert [f"source/{message.topic}/0/{message.offset}/0".encode()] == [one.value for one in found.outputs[1]]
        assert 3 == len(found.outputs)


def test_a_schema_that_is_not_registered_yet() -> None:
    """The plain path registers it."""
    given = feed("canal", 12, 2)
    unknown = build("debezium_avro", {}, Framing(tables=TableSchemas(unknown_id, lambda event: "t")))
    _, path = opened_by_arrival(given.dialect, codecs=(AvroCodec(), unknown))
    assert ["projection", "projection"] == list(path.take(given.messages))


def test_a_record_that_is_too_large() -> None:
    """The limit of each output applies to its own records."""
    given = feed("canal", 12, 1)
    translator = Translator("source", given.dialect, Limits())
    (taken,) = _path(translator, 1_000_000).take(given.messages)
    assert not isinstance(taken, str)
    (record,) = taken.outputs[1]
    size = len(record.key or b"") + len(record.value or b"")
    assert ["size"] == list(_path(translator, size).take(given.messages))


def _path(translator: Translator, max_bytes: int) -> NativePath:
    path = native_path(translator, [(AvroCodec(), ROOMY), (JsonCodec(), max_bytes)])
    assert isinstance(path, NativePath)
    return path
