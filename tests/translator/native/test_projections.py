"""Debezium projections next to the canonical topic have the plain path's records for each native message."""

from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from bench.steps.shop_updates import feed
from tests.translator.dialects.case import opened
from tests.translator.native import dts_avro_mutants, needs_extension, qlik_mutants, shareplex_mutants
from tests.translator.native.canal_mutants import mutants, with_two_images
from tests.translator.native.test_equality import (
    ALL_COLUMNS,
    CASES,
    DECLARED,
    KEYED,
    OFF,
    PRESETS,
    RESTARTED,
    ROOMY,
    agree,
    as_insert,
    opened_path,
    registered,
)
from tests.translator.native.test_qlik import DECLARED as QLIK_TABLES
from tests.translator.native.test_qlik import NAMED, at, taught
from translator.codecs import Codec
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.debezium.envelope import OFFSET_LIMIT
from translator.codecs.debezium.form import WithSchema
from translator.dialects import build
from translator.message import DeclaredTable, Limits, Message, Setup
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Translator

pytestmark = needs_extension


PROJECTIONS: dict[str, Codec] = {
    "defaults": DebeziumCodec(),
    "tombstones": DebeziumCodec(Options(tombstones=True)),
    "partial": DebeziumCodec(Options(missing_before=("partial",), unavailable="placeholder")),
    "drop_event": DebeziumCodec(Options(missing_before=("merge", "drop_event"), unavailable="fail")),
    "fail": DebeziumCodec(Options(missing_before=("fail",))),
    "schema_block": DebeziumCodec(Options(schema_block=True, tombstones=True)),
    "schema_block partial": DebeziumCodec(Options(schema_block=True, missing_before=("partial", "drop_event"))),
    "as_create": DebeziumCodec(Options(missing_before=("as_create", "drop_event"), tombstones=True, truncate="emit")),
    "upsert": registered("upsert", unavailable="omit"),
    "upsert whole": registered("upsert", key="columns"),
    "upsert with schema": registered("upsert", key="columns", schema_block=True, unavailable="omit"),
    "avro": registered("debezium_avro", unavailable="null", subject="topic_record"),
    "avro partial": registered("debezium_avro", missing_before=["partial"], tombstones=True),
    "avro drop_event": registered("debezium_avro", unavailable="placeholder", missing_before=["merge", "drop_event"]),
}
CANAL: dict[str, dict[str, Any]] = {
    "oss": {"profile": "oss"},
    "dts restarted": {"profile": "dts", "instance": RESTARTED, **OFF},
}


def beside(*names: str) -> tuple[Codec, ...]:
    """Return the codecs of the canonical topic and of these projections."""
    return (AvroCodec(), *(PROJECTIONS[name] for name in names))


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("name", CANAL)
@pytest.mark.parametrize("tables", [(), KEYED, None], ids=["sent key", "declared key", "no key"])
def test_both_ways_agree_on_mutants(name: str, projection: str, tables: tuple[DeclaredTable, ...] | None) -> None:
    codecs = beside(projection, "defaults")
    source = Setup("source", tables=tables or ())
    translator, path = opened_path(build("canal", source, CANAL[name]), codecs=codecs)
    sparse = [message.value or b"" for message in feed("canal", 12, 60).messages]
    # For canal itself, an update with two full images takes the plain path.
    messages = [*sparse, *map(with_two_images, sparse[: 6 if name == "oss" else None])]
    if tables is None:
        messages = [value.replace(b'"pkNames":["id"]', b'"pkNames":null') for value in messages]
    seed = Random(name + projection)
    found = Counter(
        agree(translator, path, Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc"), codecs)
        for offset, value in enumerate(islice(mutants(seed, messages), 8 * settings.default.max_examples))
    )
    # Upsert rejects rows without a key.
    assert found["taken"] > found.total() / 40 or (projection.startswith("upsert") and tables is None)
    assert found["shape"] > 0


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("declared", DECLARED)
def test_both_ways_agree_on_mutants_of_shareplex(preset: str, declared: str, projection: str) -> None:
    codecs = beside(projection)
    dialect = build("shareplex", Setup("source", tables=DECLARED[declared]), PRESETS[preset])
    translator, path = opened_path(dialect, codecs=codecs)
    messages = [message.value or b"" for message in feed("shareplex", 12, 60).messages]
    messages = [*messages, *map(as_insert, messages)]
    seed = Random(preset + declared + projection)
    found = Counter(
        agree(translator, path, Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc"), codecs)
        for offset, value in enumerate(
            islice(shareplex_mutants.mutants(seed, messages), 8 * settings.default.max_examples)
        )
    )
    # Without types, Avro has only the keys of deleted rows. Upsert rejects rows without a key.
    rejecting = {"avro": ("nothing", "key", "wide key"), "upsert": ("nothing", "columns without key")}
    assert found["taken"] > 0 or declared in rejecting.get(projection.split()[0], ())
    assert found["shape"] > 0


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_both_ways_agree_on_mutants_of_dts_avro(projection: str) -> None:
    codecs = beside(projection, "defaults")
    translator, path = opened_path(build("dts_avro", Setup("source"), {}), codecs=codecs)
    sent = islice(dts_avro_mutants.mutants(Random(projection)), 8 * settings.default.max_examples)
    found = Counter(
        agree(translator, path, Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc"), codecs)
        for offset, value in enumerate(sent)
    )
    assert found["taken"] > found.total() / 20
    assert {"shape", "projection"} <= found.keys()


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("declared", QLIK_TABLES)
def test_both_ways_agree_on_mutants_of_qlik(declared: str, projection: str) -> None:
    codecs = beside(projection, "defaults")
    *_, dialect = taught(QLIK_TABLES[declared], **NAMED)
    translator, path = opened_path(dialect, codecs=codecs)
    sent = islice(qlik_mutants.messages(Random(declared + projection)), 8 * settings.default.max_examples)
    found = Counter(agree(translator, path, at(offset, *message), codecs) for offset, message in enumerate(sent))
    assert found["taken"] > found.total() / 20
    assert {"shape", "projection"} <= found.keys()


@pytest.mark.parametrize("columns", [5, 12, 60])
@pytest.mark.parametrize("dialect", ["canal", "shareplex", "dts_avro", "qlik"])
def test_common_messages_are_taken(dialect: str, columns: int) -> None:
    given = feed(dialect, columns, 200)
    codecs = beside("defaults", "schema_block", "avro", "upsert", "upsert with schema")
    translator, path = opened_path(given.dialect, codecs=codecs)
    assert {agree(translator, path, message, codecs) for message in given.messages} == {"taken"}


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_golden_cases(case: Any, projection: str) -> None:
    dialect, message = opened(case)
    codecs = beside(projection)
    translator = Translator("source", dialect, Limits())
    path = native_path(translator, [(codec, ROOMY) for codec in codecs])
    if isinstance(path, NativePath):
        agree(translator, path, message, codecs)
    else:
        assert "options" in path or "check" in path


YEAR_2300_MS = 10_413_792_000_000
"""Its nanoseconds exceed 64 bits."""


@pytest.mark.parametrize("projection", ["defaults", "schema_block"])
@pytest.mark.parametrize(
    ("offset", "origin_ms", "times", "became"),
    [
        (OFFSET_LIMIT - 1, 1, {}, "taken"),
        (OFFSET_LIMIT, 1, {}, "projection"),
        (5, YEAR_2300_MS, {"ts": None, "es": None}, "taken"),
        (5, -YEAR_2300_MS, {"ts": None, "es": YEAR_2300_MS}, "taken"),
        (5, -1, {"ts": None}, "taken"),
        (5, 1, {"ts": YEAR_2300_MS, "es": 0}, "shape"),
        (5, 1, {"ts": YEAR_2300_MS, "es": 1_655_812_326}, "shape"),
        (5, 1, {"ts": 1_655_812_326_000_000}, "shape"),
    ],
)
def test_far_offsets_and_times(
    offset: int, origin_ms: int, times: dict[str, int | None], became: str, projection: str
) -> None:
    (message,) = feed("canal", 12, 1).messages
    value = msgspec.json.encode(msgspec.json.decode(message.value or b"") | times)
    codecs = beside(projection)
    translator, path = opened_path(build("canal", Setup("source"), {"profile": "flink_cdc"}), codecs=codecs)
    assert agree(translator, path, Message("raw", 0, offset, origin_ms, None, value), codecs) == became


@pytest.mark.parametrize(
    ("cell", "became"), [("1.5", "taken"), (None, "taken"), ("NaN", "projection"), ("Infinity", "projection")]
)
def test_what_a_schema_block_cannot_say_is_left_to_the_plain_way(cell: str | None, became: str) -> None:
    """A NaN takes the plain path, because Connect reads the text NaN as the number 0."""
    (message,) = feed("canal", 12, 1).messages
    body = msgspec.json.decode(message.value or b"")
    name = next(name for name, type_ in body["mysqlType"].items() if type_ == "double")
    body["data"][0][name] = cell
    codecs = beside("schema_block")
    translator, path = opened_path(feed("canal", 12, 1).dialect, codecs=codecs)
    sent = msgspec.structs.replace(message, value=msgspec.json.encode(body))
    assert agree(translator, path, sent, codecs) == became


def test_a_value_that_no_block_can_say_counts_where_nothing_is_written() -> None:
    """Without it, the old image is complete, so the change is written and not dropped."""
    declared = DECLARED["columns without key"]
    name = next(name for name, type_ in ALL_COLUMNS.columns.items() if type_ == "float64")
    body = {"meta": {"op": "upd", "table": "SHOP.orders"}, "key": {"id": 12}, "data": {name: "NaN"}}
    codecs = beside("schema_block partial")
    dialect = build("shareplex", Setup("source", tables=declared), {"preset": "dts"})
    translator, path = opened_path(dialect, codecs=codecs)
    assert agree(translator, path, Message("raw", 0, 5, 1, None, msgspec.json.encode(body)), codecs) == "projection"
    body["data"] = {name: "1.5"}
    assert agree(translator, path, Message("raw", 0, 6, 1, None, msgspec.json.encode(body)), codecs) == "taken"


def test_a_block_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has one block for values and one for keys. Deletes without a schema have their own."""
    asked: list[str] = []
    whole = WithSchema._keep
    monkeypatch.setattr(WithSchema, "_keep", lambda self, *shape: asked.append("block") or whole(self, *shape))
    given = feed("canal", 12, 200)
    _, path = opened_path(given.dialect, codecs=(AvroCodec(), DebeziumCodec(Options(schema_block=True))))
    assert not any(isinstance(taken, str) for taken in path.take(given.messages))
    assert len(asked) == 2
