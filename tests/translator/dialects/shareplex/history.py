"""Changing tables as SharePlex messages of one partition, in every form on the format page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from dev.demo import shop
from dev.demo.shop import Row, ShopChange, ShopColumn, ShopTable
from dev.demo.writers import iso, to_json
from tests.reading import ReadTable, decode
from translator.codecs.json import JsonCodec
from translator.message import DeclaredTable, Dialect, Learned, Limits, Message
from translator.translation.translate import Events, Translator

OWNER = "SHOP"

CANONICAL = {
    "bigint": "int64",
    "int": "int32",
    "decimal": "decimal(14,2)",
    "varchar": "string",
    "datetime": "timestamp",
    "date": "date",
    "double": "float64",
}

TABLES = tuple(
    ShopTable(shape.name, tuple(column for column in shape.columns if column.kind in CANONICAL), shape.key)
    for shape in shop.TABLES
)
"""The shop's tables without binary columns, whose spelling is unknown (§5)."""


@dataclass(frozen=True)
class Form:
    """How a writer spells changes."""

    wide: bool = False
    """`key` is the full old row, as with all columns logged. Otherwise it is the key columns."""

    nulls: bool = False
    """NULLs are sent in inserts and deletes, as in DTS. Native Post omits them."""

    text: bool = False
    """Numbers are sent as text."""

    pairs: bool = False
    """An update is two objects."""

    whole_meta: bool = False
    """All metadata is enabled. Default output has none."""

    words: bool = False
    """The documented words instead of the codes."""

    indented: bool = False


QUEST, DTS = Form(), Form(wide=True, nulls=True, text=True, whole_meta=True)
FORMS = st.builds(Form, *[st.booleans()] * 7)

_CODES = {"load": "ins", "insert": "ins", "update": "upd", "delete": "del"}
_WORDS = {"ins": "INSERT", "upd": "Update", "del": "DELETE"}


def declared(table: ShopTable) -> DeclaredTable:
    """Return the table as an operator declares it."""
    columns = {column.name: CANONICAL[column.kind] for column in table.columns}
    return DeclaredTable(f"{OWNER}.{table.name}", table.key, columns)


def objects(change: ShopChange, form: Form, number: int) -> list[dict[str, Any]]:
    """Return the objects of a change, two for an update in halves."""
    op = _CODES[change.op]
    before, after = change.before or {}, change.after or {}
    if op != "upd":
        row = {name: value for name, value in (after or before).items() if form.nulls or value is not None}
        return [_object(change, form, number, _WORDS[op] if form.words else op, data=row)]
    changed = {name: value for name, value in after.items() if value != before[name]}
    key = {name: before[name] for name in change.table.key}
    if form.pairs:
        names = [name for name in before if name in key or name in changed]
        halves = (("UPDATE BEFORE", before), ("UPDATE AFTER", after))
        return [
            _object(change, form, number, word, data={name: image[name] for name in names}) for word, image in halves
        ]
    word = _WORDS[op] if form.words else op
    return [_object(change, form, number, word, data=changed, key=before if form.wide else key)]


def _object(change: ShopChange, form: Form, number: int, op: str, **images: Row) -> dict[str, Any]:
    meta: dict[str, Any] = {"op": op, "table": f"{OWNER}.{change.table.name}"}
    if form.whole_meta or form.pairs:
        meta |= {"trans": f"7.0.{number}", "seq": number}
    if form.whole_meta:
        meta |= {
            "time": iso(change.at)[:19],
            "userid": 84,
            "scn": str(14589063118712 + number),
            "posttime": iso(change.at),
        }
    cells = {name: {column: cell(value, form) for column, value in row.items()} for name, row in images.items()}
    return {"meta": meta, **cells}


def cell(value: Any, form: Form = QUEST) -> Any:
    """Return a value as it is sent."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}000"
    if isinstance(value, date):
        return iso(value)
    return str(value) if form.text and isinstance(value, (int, float, Decimal)) else value


def text(parts: Iterable[dict[str, Any]], form: Form) -> bytes:
    """Return objects as one value, one per line, with the whitespace of native Post."""
    lines = [to_json(part)[:-1] + b" }" for part in parts]
    if form.indented:
        lines = [json.dumps(json.loads(line, parse_float=_Verbatim), indent=2).encode() for line in lines]
    return b"\n".join(lines)


class _Verbatim(float):
    """A number that is written as it was read."""

    def __new__(cls, digits: str) -> _Verbatim:
        number = super().__new__(cls, digits)
        number.digits = digits
        return number

    digits: str

    def __repr__(self) -> str:
        return self.digits


def canonical(row: Row, table: ShopTable) -> Row:
    """Return the canonical form of a source row."""
    return {column.name: _canonical(column, row[column.name]) for column in table.columns}


def _canonical(column: ShopColumn, value: Any) -> Any:
    if isinstance(value, (Decimal, date)):
        return str(cell(value))
    return value


def messages(changes: Sequence[ShopChange], form: Form, sizes: Sequence[int] = (1,)) -> list[Message]:
    """Return the changes as values, with these numbers of changes in turn."""
    values, start, turn = [], 0, 0
    while start < len(changes):
        size = sizes[turn % len(sizes)]
        parts = [
            part
            for n, change in enumerate(changes[start : start + size], start + 1)
            for part in objects(change, form, n)
        ]
        values.append(text(parts, form))
        start, turn = start + size, turn + 1
    return [Message("raw", 0, offset, 0, None, value) for offset, value in enumerate(values)]


def events_of(
    dialect: Dialect, given: Iterable[Message], learned: dict[str, object] | None = None
) -> list[dict[str, Any]]:
    """Return the events with images as objects. No message is rejected."""
    translator, codec, events = Translator("s", dialect, Limits()), JsonCodec(), []
    for message in given:
        result = translator.translate(message)
        if isinstance(result, Learned) and learned is not None:
            learned[result.key] = dialect.learn(result.key, result.document)
            continue
        assert isinstance(result, Events), result
        records = translator.encode(codec, message, result)
        assert isinstance(records, list), records
        events += [decode(record.value) for record in records]
    return events


def rows_of(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows that a consumer derives from the events of one table, by key as text."""
    table = ReadTable()
    for event in events:
        table.apply(event)
    return dict(table.rows)
