"""The native path validates every string: each is misspelled in turn, even if it does not affect the output."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from bench.steps.shop_updates import feed
from tests.translator.dialects.dts_avro.composer import encode
from tests.translator.dialects.qlik import avro
from tests.translator.native import dts_avro_mutants, needs_extension, qlik_mutants
from tests.translator.native.canal_mutants import Body, with_two_images
from tests.translator.native.misspellings import BAD, in_avro, in_json
from tests.translator.native.test_dts_avro import OPTIONS as DTS_AVRO
from tests.translator.native.test_equality import OPTIONS, PRESETS, agree, as_insert, opened_path
from tests.translator.native.test_qlik import NAMED
from tests.translator.native.test_qlik import taught as taught_qlik
from tests.translator.native.test_qlik_avro import TOLD, value_of
from tests.translator.native.test_qlik_avro import taught as taught_qlik_avro
from translator.dialects import build
from translator.message import Message, Setup
from translator.translation.native_path import NativePath
from translator.translation.translate import Translator

pytestmark = needs_extension

Misspell = Callable[[bytes], Iterator[bytes]]


def message(value: bytes) -> Message:
    return Message("raw.x", 3, 7, 1_767_600_000_123, None, value, topic_id="abc")


def hold_together(
    translator: Translator, path: NativePath, values: Iterable[bytes], misspell: Misspell, *, all_taken: bool = False
) -> None:
    """Compare both paths over all misspellings of messages, at least one of which is native without them."""
    taken = [value for value in values if agree(translator, path, message(value)) == "taken"]
    assert taken
    assert not all_taken or len(taken) == len([*values])
    found = Counter(agree(translator, path, message(bad)) for value in taken for bad in misspell(value))
    assert found.total() > len(BAD) * 5 * len(taken)
    # Some of them are valid: escapes in cells, and any text in Avro.
    assert 0 < found["taken"] < found.total()


def canal(name: str) -> Sequence[bytes]:
    """Return an INSERT, an UPDATE and a DELETE with every member, none of them empty."""
    (update,) = [message.value or b"" for message in feed("canal", 4, 1).messages]
    body: Body = json.loads(with_two_images(update) if name.startswith("dts_legacy") else update)
    body |= {"gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:23", "sql": "update orders", "sqlType": {"id": -5}}
    in_old = name == "drs" or name.startswith("dts_legacy")
    one_image = {"old": body["data"], "data": None} if in_old else {"data": body["data"], "old": None}
    made = [body, {**body, "type": "INSERT", "old": None}, {**body, "type": "DELETE", **one_image}]
    if name == "ticdc":
        made.append({**body, "id": 0, "_tidb": {"commitTs": 429918007904436226}})
    return [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in made]


@pytest.mark.parametrize("name", OPTIONS)
def test_canal(name: str) -> None:
    hold_together(*opened_path(build("canal", Setup("source"), OPTIONS[name])), canal(name), in_json, all_taken=True)


@pytest.mark.parametrize("preset", PRESETS)
def test_shareplex(preset: str) -> None:
    (update,) = [message.value or b"" for message in feed("shareplex", 4, 1).messages]
    body: Body = json.loads(update)
    body["meta"] |= {"userid": "84", "rowid": "AAATGpAAIAAItcIAAA", "trans": "7.0.411499", "host": "h1", "scn": "145"}
    values = [update, as_insert(update), json.dumps(body, separators=(",", ":")).encode()]
    hold_together(*opened_path(build("shareplex", Setup("source"), PRESETS[preset])), values, in_json)


def test_qlik() -> None:
    """The messages include deletes, and inserts with an unread section."""
    chance = Random(1)
    translator, path, _, _ = taught_qlik(**NAMED)
    bodies = [qlik_mutants.common(chance) for _ in range(6)]
    for body in bodies[:3]:
        inner: dict[str, Any] = body.get("message", body)
        row = inner["data"]
        inner |= {"data": row, "beforeData": dict.fromkeys(row)}
        inner["headers"] |= {"operation": "DELETE", "changeMask": None, "columnMask": None}
    values = [json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() for body in bodies]
    hold_together(translator, path, values, in_json)


@pytest.mark.parametrize("name", DTS_AVRO)
def test_dts_avro(name: str) -> None:
    chance = Random(2)
    values = [encode(dts_avro_mutants.common(chance), "v3") for _ in range(4)]
    hold_together(*opened_path(build("dts_avro", Setup("source"), DTS_AVRO[name])), values, in_avro)


def test_qlik_avro() -> None:
    headers = {"changeMask": b"\x02", "columnMask": b"\x03"}
    body = avro.body("UPDATE", {"id": 7, "c": "after"}, {"id": 7, "c": "before"}, **headers)
    known = taught_qlik_avro("string", TOLD.index({"type": "STRING"}))
    hold_together(*known, [value_of("string", body)], in_avro)
