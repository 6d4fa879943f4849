"""The corpus: named events that together cover every field and every branch of the Avro schema.

Second readers decode it: Avro for Python, for Java and in Spark, and the JSON Schema. In a few events, it covers what
the Hypothesis strategies cover in many. It includes values that no translator writes, such as a negative row number,
because the schema allows them and no reader may fail on them. `test_corpus.py` checks that it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from cdc_core.envelope import (
    KEY_KINDS,
    OPERATIONS,
    STATES,
    VARIANT_BASES,
    ChangeEvent,
    Ddl,
    Detail,
    Issue,
    Origin,
    Tx,
)
from cdc_core.position import position
from tests.translator.examples import AFTER, BEFORE, CONTEXT, DDL, DETAIL, KEY, UPDATE

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

FIRST_MICRO, LAST_MICRO = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The limits of years with four digits. A time beyond them is legal, but no date type holds it."""

WORDS = "Größe 名 \U0001f600 e\u0301 \x00\x1f\x7f\u2028 \"'\\/"
"""Characters of one to four bytes, a combining accent, control characters and quotes."""

LARGE_TEXT = WORDS * 10_000


def _like_update(**fields: Any) -> ChangeEvent:
    return msgspec.structs.replace(UPDATE, **fields)


def _image(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


_OPERATIONS = {
    "r": ChangeEvent.snapshot(CONTEXT, KEY, AFTER, DETAIL),
    "c": ChangeEvent.insert(CONTEXT, KEY, AFTER, DETAIL),
    "u": UPDATE,
    "u, no before": ChangeEvent.update(CONTEXT, KEY, None, AFTER, Detail()),
    "d": ChangeEvent.delete(CONTEXT, KEY, BEFORE, DETAIL),
    "d, key only": ChangeEvent.delete(CONTEXT, KEY, None, Detail()),
    "t": ChangeEvent.truncate(CONTEXT, Detail()),
    "schema": ChangeEvent.schema_change(CONTEXT, DDL, Detail()),
    "schema, not parsed": ChangeEvent.schema_change(CONTEXT, Ddl("QUERY", "DROP TABLE t"), Detail()),
    "tx": ChangeEvent.transaction(CONTEXT, Detail()),
    "watermark": ChangeEvent.watermark(CONTEXT, Detail()),
}

_WORDS_OF_CLOSED_LISTS = {
    f"{op}, {state}, {key_kind}, {basis}": _like_update(
        op=op, before_state=state, after_state=state, key_kind=key_kind, variant_basis=basis
    )
    for op, state, key_kind, basis in zip_longest(OPERATIONS, STATES, KEY_KINDS, VARIANT_BASES, fillvalue="later word")
}

_TEXTS = {
    "nothing but empty texts": msgspec.structs.replace(
        ChangeEvent.watermark(CONTEXT, Detail()),
        **dict.fromkeys(("id", "kind", "source", "dialect", "pos", "pos_scope"), ""),
        **dict.fromkeys(("key_kind", "before_state", "after_state"), ""),
        **dict.fromkeys(("variant", "variant_basis", "dbms", "server", "task", "db", "schema", "table", "pos_native")),
        **dict.fromkeys(("ts_commit_us", "ts_capture_us", "schema_id", "tx")),
        origin=Origin("", 0, 0, 0, 0),
    ),
    "empty texts beside nulls": _like_update(
        op="", variant="", task="", key="{}", before="{}", after="{}", tx=Tx(""), ddl=Ddl("", "", [""]), schema_id=""
    ),
    "words": _like_update(
        id=f"{WORDS}/{WORDS}/0/0/0",
        source=WORDS,
        server=WORDS,
        db=WORDS,
        schema=WORDS,
        table=WORDS,
        pos_native=WORDS,
        key=_image({WORDS: WORDS}),
        key_old=_image({WORDS: ""}),
        before=_image({WORDS: WORDS, "": ""}),
        after=_image({WORDS: None, "": WORDS}),
        changed=[WORDS],
        unavailable=[WORDS, ""],
        issues=[Issue(WORDS, WORDS, WORDS)],
        tx=Tx(WORDS),
        ddl=Ddl(WORDS, WORDS, [WORDS], True),
        origin=Origin(WORDS, 0, 0, 0, 1),
        notes=[WORDS],
        ext={WORDS: WORDS},
    ),
    "large": _like_update(
        before=_image({f"c{n}": n for n in range(5_000)}),
        after=_image({"text": LARGE_TEXT, "bytes": "A" * 300_000}),
        changed=[f"c{n}" for n in range(5_000)],
        ext={f"c{n}": str(n) for n in range(1_000)},
    ),
}

_SIZES = {
    "lists and map empty": _like_update(
        changed=[], unavailable=[], issues=[], notes=[], ext={}, ddl=Ddl("ALTER", None, [], False)
    ),
    "lists and map of one": _like_update(ddl=Ddl("ALTER", None, ["a"], True)),
    "lists and map of many": _like_update(
        changed=["a", "b", "a"],
        unavailable=["c", "d", "e"],
        issues=[Issue("a", "ZERO_DATE"), Issue("b", "OUT_OF_RANGE", ""), Issue("a", "ZERO_DATE", "0000-00-00")],
        notes=["PK_CHANGED", "TZ_ASSUMED=+08:00"],
        ext={"b": "1", "a": "2", "": ""},
        ddl=Ddl("RENAME", "RENAME TABLE a TO b, c TO d", ["a", "b", "c", "d"], True),
    ),
}


def _numbers(integer: int, long: int, *, last: bool | None) -> ChangeEvent:
    """Return an event with these numbers in all fields but times. `v` is always 1."""
    return _like_update(
        tx=Tx("t", long, long, last),
        origin=Origin("t", integer, long, integer, integer),
        pos=position(max(long, 0), max(integer, 0) % 10**6),
    )


def _times(micros: int) -> ChangeEvent:
    return _like_update(ts_commit_us=micros, ts_capture_us=micros, ts_origin_us=micros)


_NUMBERS = {
    "least numbers": _numbers(INT_MIN, LONG_MIN, last=False),
    "greatest numbers": _numbers(INT_MAX, LONG_MAX, last=True),
    "minus one": _numbers(-1, -1, last=None),
    "zero": _numbers(0, 0, last=None),
    # 63 and 64, 8191 and 8192: a variable-length integer takes one more byte.
    **{f"number {n}": _numbers(n, n, last=None) for n in (63, 64, -64, -65, 8191, 8192, -8192, -8193)},
    "no numbers": _like_update(tx=Tx("t"), ts_commit_us=None, ts_capture_us=None),
}

_TIMES = {
    "time zero": _times(0),
    "a microsecond before 1970": _times(-1),
    "first microsecond of year 1": _times(FIRST_MICRO),
    "last microsecond of year 9999": _times(LAST_MICRO),
    "before calendars changed": _times(-12_219_292_800_000_001),
}

_TIMES_BEYOND_DATES = {"least times": _times(LONG_MIN), "greatest times": _times(LONG_MAX)}

_IMAGES = {
    "scalars": _like_update(
        key=_image({"b": LONG_MAX, "a": "1.50", "c": True}),
        key_old=_image({"b": LONG_MIN, "a": "-1.50", "c": False}),
        before=_image({"null": None, "true": True, "false": False, "int64": LONG_MIN, "uint64": str(2**64 - 1)}),
        after=_image(
            {
                "float64": 0.1,
                "least": 5e-324,
                "greatest": 1.7976931348623157e308,
                "minus zero": -0.0,
                "NaN": "NaN",
                "infinite": "-Infinity",
                "decimal": "-0.000000000000000000000000000001",
                "json": '{"a":[1,null,"\\""]}',
            }
        ),
    ),
}

WITHIN_DATES: Mapping[str, ChangeEvent] = {
    **_OPERATIONS,
    **_WORDS_OF_CLOSED_LISTS,
    **_TEXTS,
    **_SIZES,
    **_NUMBERS,
    **_TIMES,
    **_IMAGES,
}
"""The events whose times a reader can convert to dates."""

CORPUS: Mapping[str, ChangeEvent] = {**WITHIN_DATES, **_TIMES_BEYOND_DATES}
