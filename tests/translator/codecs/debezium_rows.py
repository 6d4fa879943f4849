"""Hypothesis strategy: changes of a row whose true values are known, and the events that a source sent."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from cdc_core.envelope import (
    ChangeEvent,
    Column,
    Context,
    Detail,
    ImageText,
    Issue,
    Key,
    Origin,
    TableSchema,
)
from cdc_core.position import position
from tests.translator.examples import CONTEXT
from tests.translator.strategies import INT64, TEXT

Image = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An event, its schema, and the true old and new row. None means that the row does not exist."""

    event: ChangeEvent
    schema: TableSchema | None
    old: Image | None
    new: Image | None

    @property
    def tells_null_key(self) -> bool:
        """Whether the event is an update that gave a row a key, with the earlier NULL in its old image."""
        if self.event.op != "u" or self.event.key is None or self.event.key_old is not None:
            return False
        sent = json.loads(self.event.before or "{}")
        return any(name in sent and sent[name] is None for name in json.loads(self.event.key))


DIGITS = st.integers(0, 10**20).map(str)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int8": st.integers(-128, 127),
    "uint8": st.integers(0, 255),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": INT64,
    "uint64": DIGITS,
    "decimal(22,2)": DIGITS.map(lambda digits: f"{digits}.50"),
    "float32": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "float64": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["NaN", "Infinity", "-Infinity"]),
    "string": TEXT,
    "bytes": st.binary(max_size=6).map(lambda raw: msgspec.json.encode(raw).decode().strip('"')),
    "date": st.dates().map(str),
    "timestamp": st.datetimes().map(lambda time: time.isoformat()),
    "timestamptz": st.datetimes().map(lambda time: time.isoformat() + "Z"),
    "json": st.just('{"a":[1]}'),
    "unknown": st.booleans() | TEXT | DIGITS,
}
KEY_TYPES = ("int64", "uint8", "uint64", "string", "unknown")
NAMES = st.sampled_from(["a", "b", "price", "payload", "schema", "before", 'q"uote', "名"]) | TEXT
CHOICE = st.booleans()


@st.composite
def cases(draw: st.DrawFn, *, moving: bool = False) -> Case:
    """Generate changes with every kind of image that a dialect can send.

    Args:
        moving: generate only updates, most of which change the key if there is one.
    """
    columns = draw(_columns())
    keyed = [column.name for column in columns if column.key is not None]
    others = [column.name for column in columns if column.key is None]
    old, new = draw(_row(columns)), draw(_row(columns))
    op = "u" if moving else draw(st.sampled_from("rcud"))
    key_changes = moving or (op == "u" and draw(CHOICE))
    if op == "u":
        new = {name: old[name] if (name in keyed and not key_changes) or draw(CHOICE) else new[name] for name in new}
    kind = "primary" if keyed else "none"
    schema = TableSchema.of("s", "db", None, "t", columns, kind) if draw(CHOICE) else None
    unavailable, issues = (draw(st.lists(st.sampled_from(others), max_size=1)) if others else [] for _ in range(2))
    # A value can be withheld, or have no form, in one image and not in the other.
    hidden_before, hidden_after = ([name for name in (*unavailable, *issues) if draw(CHOICE)] for _ in range(2))
    after = _sent(draw, new, keyed, hidden_after, everything=op != "u") if op != "d" else None
    before = None
    if op in "ud" and ((old != new and key_changes) or draw(CHOICE)):
        before = _sent(draw, old, keyed, hidden_before, everything=False)
    changed = None
    if op == "u" and draw(CHOICE):
        changed = [name for name in old if old[name] != new[name] or draw(CHOICE)]
    key = Key(_key(old if op == "d" else new, keyed), kind)
    if op == "u" and any(old[name] != new[name] for name in keyed):
        key = Key(key.text, kind, _key(old, keyed))
    detail = Detail(changed, unavailable, [Issue(name, "ZERO_DATE", "0") for name in issues])
    at = draw(_contexts(schema))
    old_image = None if before is None else _image(before, schema, keyed)
    build = {
        "r": lambda: ChangeEvent.snapshot(at, key, _image(after, schema, keyed), detail),
        "c": lambda: ChangeEvent.insert(at, key, _image(after, schema, keyed), detail),
        "u": lambda: ChangeEvent.update(at, key, old_image, _image(after, schema, keyed), detail),
        "d": lambda: ChangeEvent.delete(at, key, old_image, detail),
    }
    return Case(build[op](), schema, old if op in "ud" else None, None if op == "d" else new)


def _key(row: Image, keyed: list[str]) -> str | None:
    """Return the key of a row, or None if it contains NULL."""
    values = {name: row[name] for name in keyed}
    return _json(values) if values and None not in values.values() else None


@st.composite
def _columns(draw: st.DrawFn) -> list[Column]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    keys = draw(st.integers(0, min(2, len(names))))
    return [
        Column(name, draw(st.sampled_from(KEY_TYPES if place < keys else sorted(VALUES))), key=place + 1 or None)
        if place < keys
        else Column(name, draw(st.sampled_from(sorted(VALUES))))
        for place, name in enumerate(names)
    ]


@st.composite
def _row(draw: st.DrawFn, columns: list[Column]) -> Image:
    values = {column: VALUES[column.type] for column in columns}
    nullable = draw(CHOICE)  # a unique key can contain NULL, a primary key cannot
    return {
        column.name: draw(value if column.key is not None and not nullable else st.none() | value)
        for column, value in values.items()
    }


@st.composite
def _contexts(draw: st.DrawFn, schema: TableSchema | None) -> Context:
    offset = draw(st.integers(0, 2**42 - 1))
    n = draw(st.integers(0, 999_999))
    maybe_time = st.none() | INT64
    return msgspec.structs.replace(
        CONTEXT,
        db="db",
        schema=draw(st.sampled_from([None, "dbo"])),
        table="t",
        pos=position(offset, n),
        ts_commit_us=draw(maybe_time),
        ts_capture_us=draw(maybe_time),
        tx=draw(st.sampled_from([None, CONTEXT.tx])),
        server=draw(st.sampled_from([None, "db-1"])),
        schema_id=schema and schema.id,
        origin=Origin("raw", 0, offset, 0, 1),
    )


def _sent(draw: st.DrawFn, row: Image, keyed: list[str], withheld: list[str], *, everything: bool) -> Image:
    """Return what a source sends of a row: all of it, or the key and some columns."""
    some = not everything and draw(CHOICE)
    return {
        name: value
        for name, value in row.items()
        if name not in withheld and (name in keyed or not some or draw(CHOICE))
    }


def _image(image: Image | None, schema: TableSchema | None, keyed: list[str]) -> ImageText:
    assert image is not None
    if schema is not None and schema.column_names <= image.keys():
        state = "full"
    elif keyed and image.keys() == set(keyed):
        state = "key"
    else:
        state = "partial"
    return ImageText(_json(image), state)


def _json(image: Image) -> str:
    return msgspec.json.encode(image).decode()
