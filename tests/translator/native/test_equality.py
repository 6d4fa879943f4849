"""The law of the native path: for messages that it handles, it writes what the plain path writes, byte for byte."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import settings

from bench.steps.shop_updates import declaration, feed
from tests.translator.dialects.case import find_cases, opened
from tests.translator.native import needs_extension, shareplex_mutants
from tests.translator.native.canal_mutants import mutants, with_two_images
from translator.codecs import Codec, Framing
from translator.codecs import build as build_codec
from translator.codecs.avro import AvroCodec
from translator.codecs.record import Record
from translator.codecs.registered import TableSchemas
from translator.dialects import build
from translator.dialects.shareplex.instants import Instants
from translator.message import DeclaredTable, Dialect, Limits, Message, Setup
from translator.translation.dead_letter import DeadLetter
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Events, Translator

pytestmark = needs_extension

REASONS = {"shape", "spelling", "layout", "columns", "cell", "key", "size", "projection"}
ROOMY = 1_000_000
CANONICAL = (AvroCodec(),)
OFF = {"continuity": {"action": "off"}}
RESTARTED = {"created": "2021-01-01T00:00:00+08:00", "restarted": ["2026-01-05T09:00:00+08:00"]}

OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {"profile": "auto"},
    "oss": {"profile": "oss"},
    "ticdc": {"profile": "ticdc", "timezone": "Asia/Shanghai"},
    "flink_cdc": {"profile": "flink_cdc"},
    "ckafka": {"profile": "ckafka"},
    "drs": {"profile": "drs", **OFF},
    "dts": {"profile": "dts", **OFF},
    "dts restarted": {"profile": "dts", "instance": RESTARTED, **OFF},
    "dts_legacy": {"profile": "dts_legacy", **OFF},
    "dts_legacy old_is_before": {"profile": "dts_legacy", "legacy_update_direction": "old_is_before", **OFF},
}
KEYED = (DeclaredTable("*", key=("column_1", "id")),)


def plain(translator: Translator, codecs: Sequence[Codec], message: Message) -> list[list[Record] | DeadLetter] | None:
    """Return the plain path's records for each output, or None if the message has no rows."""
    result = translator.translate(message)
    return [translator.encode(codec, message, result) for codec in codecs] if isinstance(result, Events) else None


def opened_path(
    dialect: Dialect, max_bytes: int = ROOMY, codecs: Sequence[Codec] = CANONICAL
) -> tuple[Translator, NativePath]:
    translator = Translator("source", dialect, Limits())
    path = native_path(translator, [(codec, max_bytes) for codec in codecs])
    assert isinstance(path, NativePath), path
    return translator, path


def registered(name: str, **options: Any) -> Codec:
    """Return a codec whose schemas a registry knows."""

    def id_of(subject: str, text: str) -> int:
        return crc32(f"{subject} {text}".encode()) >> 1 or 1

    return build_codec(
        name, options, Framing(tables=TableSchemas(id_of, lambda event: f"t.{event.table}"), routed=True)
    )


def as_insert(value: bytes) -> bytes:
    """Return a SharePlex update as an insert of the columns that it contains."""
    body = msgspec.json.decode(value)
    body["meta"]["op"] = "ins"
    body["data"] = body.pop("key") | body["data"]
    return msgspec.json.encode(body)


def agree(translator: Translator, path: NativePath, message: Message, codecs: Sequence[Codec] = CANONICAL) -> str:
    """Compare both paths, and return the result for the message."""
    (taken,) = path.take([message])
    if isinstance(taken, str):
        assert taken in REASONS, message.value
        return taken
    assert plain(translator, codecs, message) == taken.outputs, message.value
    return "taken"


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("tables", [(), KEYED], ids=["sent key", "declared key"])
def test_both_ways_agree_on_mutants(name: str, tables: tuple[DeclaredTable, ...]) -> None:
    source = Setup("source", tables=tables)
    translator, path = opened_path(build("canal", source, OPTIONS[name]))
    sparse = [message.value or b"" for message in feed("canal", 12, 60).messages]
    # For canal itself, an update with two full images takes the plain path.
    two_images = map(with_two_images, sparse[: 6 if name == "oss" else None])
    messages = [*sparse, *two_images]
    found = Counter(
        agree(translator, path, Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc"))
        for offset, value in enumerate(islice(mutants(Random(name), messages), 8 * settings.default.max_examples))
    )
    # Some messages are handled and some are not. Otherwise the test would prove nothing.
    assert found["taken"] > found.total() / 40
    assert {"shape", "columns"} <= found.keys()


ALL_COLUMNS = declaration(12)
PRESETS: dict[str, dict[str, Any]] = {
    "quest": {"preset": "quest"},
    "dts": {"preset": "dts"},
    "lenient": {"preset": "lenient", "timezone": "Europe/Berlin", "operations": {"add": "ins"}},
}
DECLARED = {
    "nothing": (),
    "key": (DeclaredTable("*", key=("id",)),),
    "wide key": (DeclaredTable("SHOP.*", key=("column_1", "id")),),
    "columns": (ALL_COLUMNS,),
    "columns without key": (msgspec.structs.replace(ALL_COLUMNS, key=()),),
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("declared", DECLARED)
def test_both_ways_agree_on_mutants_of_shareplex(preset: str, declared: str) -> None:
    translator, path = opened_path(build("shareplex", Setup("source", tables=DECLARED[declared]), PRESETS[preset]))
    messages = [message.value or b"" for message in feed("shareplex", 12, 60).messages]
    messages = [*messages, *map(as_insert, messages)]
    found = Counter(
        agree(translator, path, Message("raw.x", 3, offset, 1_767_600_000_123, None, value, topic_id="abc"))
        for offset, value in enumerate(
            islice(shareplex_mutants.mutants(Random(preset + declared), messages), 8 * settings.default.max_examples)
        )
    )
    assert found["taken"] > found.total() / 50
    assert found["shape"] > 0


def test_a_time_of_shareplex_is_asked_for_once_and_what_is_none_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid time can have any length, and there can be any number of them."""
    asked: Counter[str] = Counter()
    whole = Instants._read
    monkeypatch.setattr(Instants, "_read", lambda self, text: asked.update([text]) or whole(self, text))
    _, path = opened_path(build("shareplex", Setup("source"), PRESETS["quest"]))
    body = msgspec.json.decode(feed("shareplex", 12, 1).messages[0].value or b"")
    times = {"2026-01-05T08:00:09": "taken", "x" * 100_000: "cell"}
    for time, became in times.items():
        value = msgspec.json.encode(body | {"meta": body["meta"] | {"time": time, "posttime": time}})
        found = path.take([Message("raw.x", 3, offset, 1_767_600_000_123, None, value) for offset in range(3)])
        assert {became} == {taken if isinstance(taken, str) else "taken" for taken in found}
    assert [1, 3] == [asked[time] for time in times]


@pytest.mark.parametrize("columns", [5, 12, 60])
@pytest.mark.parametrize("dialect", ["canal", "dts_avro", "qlik", "shareplex"])
def test_common_messages_are_taken(dialect: str, columns: int) -> None:
    given = feed(dialect, columns, 200)
    translator, path = opened_path(given.dialect)
    assert {agree(translator, path, message) for message in given.messages} == {"taken"}


CASES = [case for case in find_cases() if case.parent.name in ("canal", "dts_avro", "qlik", "shareplex")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_golden_cases(case: Any) -> None:
    dialect, message = opened(case)
    translator = Translator("source", dialect, Limits())
    path = native_path(translator, [(AvroCodec(), ROOMY)])
    if isinstance(path, NativePath):
        agree(translator, path, message)
    else:
        assert "options" in path or "check" in path


def test_a_record_that_is_too_large_is_left_to_the_plain_way() -> None:
    given = feed("canal", 12, 1)
    _, path = opened_path(given.dialect, max_bytes=900)
    assert ["size"] == path.take(given.messages)
