"""Seeded mutations of SharePlex messages give events or a dead letter without row data.

`MUTATIONS=100000` in the environment runs the number of an acceptance run. Without it, the run is short.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from dev.demo.shop import Shop
from tests.translator.dialects.shareplex.history import DTS, QUEST, TABLES, Form, declared, objects, text
from tests.translator.dialects.shareplex.messages import BAND, CASES, KEYED, body, dialect, sample
from translator.codecs.json import JsonCodec
from translator.dialects.shareplex import SharePlex
from translator.errors import ErrorCode
from translator.message import Limits, Message, Skip
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator

COUNT = int(os.environ.get("MUTATIONS", "3000"))
PARTS = 10
"""Each has its own seed, so that a failure can be reproduced alone."""

SECRET = "4711geheim"
FORMS = (QUEST, DTS, Form(pairs=True), Form(words=True, whole_meta=True, indented=True), Form(wide=True))
READERS = (
    dialect(BAND, KEYED, *map(declared, TABLES)),
    dialect(*map(declared, TABLES), timezone="America/New_York", default_table="SHOP.orders"),
    dialect(preset="dts", default_table="X.Y"),
    dialect(KEYED, preset="lenient", operations={"u": "UPDATE AFTER"}),
)
TRANSLATORS = [Translator("s", reader, Limits()) for reader in READERS]


def _values() -> list[bytes]:
    changes = list(Shop(3, TABLES).history(30))
    made = [sample(case.name) for case in sorted(CASES.iterdir())]
    made += [text(objects(change, form, n), form) for form in FORMS for n, change in enumerate(changes, 1)]
    made += [text([part for n, change in enumerate(changes[:5], 1) for part in objects(change, QUEST, n)], QUEST)]
    rows = ({"ID": SECRET, "A": SECRET}, {"ID": 1, "A": SECRET, "B": None})
    made += [
        json.dumps(body(op, data=row, key=row)).encode() for op in ("ins", "upd", "del", "TRUNCATE") for row in rows
    ]
    return [*made, json.dumps(body("DROP COLUMN", data={"COLUMN": "A"})).encode()]


VALUES = _values()
TOKENS = [
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\ud800", b"\\u0000", b"\xff", b"\xef\xbb\xbf", b"null", b"true",
    b"-0", b"1e400", b"1E99999999999999999999", b"9" * 50, b"0.1", b'"op"', b'"upd"', b'"UPDATE BEFORE"', b'"meta":{}',
    b'"key":{"ID":1}', b'"table":"A.T"', b'"seq":0', b'"idx":"1/2"', b"\n", b" ", b"<x/>", b"\x00", b'""', b"NaN",
]  # fmt: skip


def _flip(rng: random.Random, value: bytes) -> bytes:
    place = rng.randrange(len(value))
    return value[:place] + bytes([rng.randrange(256)]) + value[place + 1 :]


def _cut(rng: random.Random, value: bytes) -> bytes:
    start = rng.randrange(len(value))
    return value[:start] + value[start + rng.randint(1, 12) :]


def _insert(rng: random.Random, value: bytes) -> bytes:
    place = rng.randrange(len(value) + 1)
    return value[:place] + rng.choice(TOKENS) + value[place:]


def _truncate(rng: random.Random, value: bytes) -> bytes:
    return value[: rng.randrange(len(value))]


def _splice(rng: random.Random, value: bytes) -> bytes:
    other = rng.choice(VALUES)
    return value[: rng.randrange(len(value))] + other[rng.randrange(len(other)) :]


def _repeat(rng: random.Random, value: bytes) -> bytes:
    start = rng.randrange(len(value))
    end = start + rng.randint(1, 40)
    return value[:end] + value[start:end] + value[end:]


def _member(rng: random.Random, value: bytes) -> bytes:
    """Replace a member with another JSON value, remove it or rename it."""
    try:
        whole: Any = json.loads(value)
    except ValueError:
        return _flip(rng, value)
    if not isinstance(whole, dict) or not whole:
        return _flip(rng, value)
    parent = whole
    while True:
        name = rng.choice(sorted(parent))
        if not isinstance(parent[name], dict) or not parent[name] or rng.random() < 0.2:
            break
        parent = parent[name]
    found = parent.pop(name)
    odd = [
        None,
        True,
        0,
        -1,
        1.5,
        10**400,
        "",
        "x",
        [],
        {},
        [found],
        {"a": found},
        "2020-02-30T00:00:00",
        str(found),
        "\ud800",
    ]
    match rng.randrange(3):
        case 0:
            parent[name] = rng.choice(odd)
        case 1:
            parent[rng.choice(["op", "table", "scn", "trans", "seq", "size", "idx", "time", "host", "key", "data"])] = (
                found
            )
        case _:
            pass
    return json.dumps(whole).encode()


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _flip, _cut, _insert, _truncate, _splice, _repeat, _member, _member, _member,
)  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """Return a value with one to three mutations."""
    value = rng.choice(VALUES)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = rng.choice(MUTATIONS)(rng, value or b" ")
    return value


_FOREIGN = re.compile(r"msgspec|Error|Exception|Traceback|Decimal|codec|\.py")


@pytest.mark.requirement("shareplex.reject.1")
@pytest.mark.parametrize("part", range(PARTS))
def test_events_or_a_dead_letter(part: int) -> None:
    """A damaged message gives nothing else. No dead letter is our bug, has library text, or quotes a cell."""
    rng = random.Random(part)
    codec = JsonCodec()
    for number in range(COUNT // PARTS):
        value = mutated(rng)
        translator = rng.choice(TRANSLATORS)
        message = Message("t", 0, number, 0, None, value)
        result = translator.translate(message)
        if isinstance(result, Events):
            assert isinstance(translator.encode(codec, message, result), list), value
        elif isinstance(result, DeadLetter):
            assert result.code is not ErrorCode.INTERNAL, (result.reason, value)
            assert not _FOREIGN.search(result.reason), (result.reason, value)
            assert SECRET not in result.reason or _is_a_name(value), (result.reason, value)
        else:
            assert result in (Skip("empty"), Skip("tombstone"))


def _is_a_name(value: bytes) -> bool:
    """Return whether a mutation turned a cell's value into a name or a word of `meta`, which can be quoted."""
    found = False

    def distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found |= any(
            SECRET in name or (name in ("op", "table", "meta") and SECRET in str(cell)) for name, cell in members
        )
        return dict(members)

    decoder, place = json.JSONDecoder(object_pairs_hook=distinct), 0
    whole = value.decode("utf-8-sig", "replace")
    while place < len(whole.rstrip()):
        try:
            _, place = decoder.raw_decode(whole, len(whole) - len(whole[place:].lstrip()))
        except (ValueError, RecursionError):
            break
    return found


def test_the_values_are_valid() -> None:
    """The originals are translated, except samples that are not JSON or name no table."""
    refused = [value for value in VALUES if not any(isinstance(_result(reader, value), Events) for reader in READERS)]
    assert [sample("dts_delete_verbatim"), sample("dts_update_verbatim")] == refused


def _result(reader: SharePlex, value: bytes) -> object:
    return Translator("s", reader, Limits()).translate(Message("t", 0, 0, 0, None, value))
