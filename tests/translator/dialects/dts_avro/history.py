"""A changing table as DTS records of one partition, and the translator's output."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dev.demo.shop import ShopChange, ShopTable
from dev.demo.writers import millis
from tests.reading import ReadTable, decode
from tests.translator.dialects.canal.history import History
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    Cell,
    binary,
    character,
    compose,
    date_time,
    decimal,
    fields,
    float_,
    integer,
    local,
    timestamp,
    zoned,
)
from tests.translator.dialects.made import made
from translator.codecs.json import JsonCodec
from translator.dialects.dts_avro import DtsAvro
from translator.message import Limits, Message, Setup
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator

_DAY = ("year", "month", "day")


def _local(value: datetime, micro: int = 1) -> Cell:
    clock = (value.hour, value.minute, value.second, value.microsecond * micro)
    return local(value.year, value.month, value.day, *clock)


def _date(value: date) -> Cell:
    return date_time(**dict(zip(_DAY, (value.year, value.month, value.day), strict=True)))


def _midnight(value: date) -> Cell:
    """Return midnight, because Oracle's DATE has a clock time."""
    return local(value.year, value.month, value.day, 0, 0, 0)


def _zoned(value: datetime) -> Cell:
    names = ("hour", "minute", "second", "millis")
    clock = dict(zip(names, (value.hour, value.minute, value.second, value.microsecond), strict=True))
    return zoned("GMT+00:00", year=value.year, month=value.month, day=value.day, **clock)


def _instant(value: datetime) -> Cell:
    whole = value.replace(microsecond=0)
    return timestamp(millis(whole) // 1000, value.microsecond)


Spelling = tuple[int, Callable[[Any], Cell], Callable[[Any], Any]]
"""dataTypeNumber, the cell of a value, and its expected canonical value."""


def _same(value: Any) -> Any:
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _iso(value: datetime) -> str:
    return value.isoformat()


def _iso_nanos(value: datetime) -> str:
    return value.isoformat() + ("000" if value.microsecond else "")


def _utc(value: datetime) -> str:
    return value.isoformat() + "Z"


def _text_decimal(value: int | Decimal) -> Cell:
    return decimal(str(value))


@dataclass(frozen=True)
class Source:
    """How a database sends the kinds of columns of the shop (§5)."""

    name: tuple[str, str]
    kinds: Mapping[str, Spelling]
    path: str = "shop.{table}"


_COMMON: Mapping[str, Spelling] = {
    "bigint": (8, lambda value: integer(value, 8), _same),
    "int": (3, lambda value: integer(value, 4), _same),
    "decimal": (246, _text_decimal, str),
    "varchar": (253, character, _same),
    "datetime": (12, _local, _iso),
    "date": (10, _date, date.isoformat),
    "double": (5, float_, _same),
    "blob": (252, binary, _base64),
}
MYSQL = Source(("MySQL", "8.0.28"), _COMMON)
MYSQL_ZONED = Source(("MySQL", "5.6.47-log"), {**_COMMON, "datetime": (7, _instant, _utc)})
POSTGRESQL = Source(
    ("PostgreSQL", "14.8"),
    {
        **{
            kind: (number, *_COMMON[kind][1:])
            for kind, number in {
                "bigint": 20,
                "int": 23,
                "decimal": 1700,
                "varchar": 1043,
                "date": 1082,
                "double": 701,
                "blob": 17,
            }.items()
        },
        "datetime": (1184, _zoned, _utc),
    },
    "db.public.{table}",
)
ORACLE = Source(
    ("Oracle", "19.0.0"),
    {
        "bigint": (2, _text_decimal, str),
        "int": (2, _text_decimal, str),
        "decimal": (2, _text_decimal, str),
        "varchar": (1, lambda value: character(value.encode("gb18030"), "ZHS32GB18030"), _same),
        "datetime": (180, lambda value: _local(value, 1000), _iso_nanos),
        "date": (12, _midnight, lambda value: f"{value.isoformat()}T00:00:00"),
        "double": (101, float_, _same),
        "blob": (113, binary, _base64),
    },
)
"""With its own charset and units, and decimals as integers."""

SOURCES = {"mysql": MYSQL, "mysql_zoned": MYSQL_ZONED, "postgresql": POSTGRESQL, "oracle": ORACLE}


@dataclass(frozen=True)
class Form:
    """How a task writes: the source, the schema version, and marks between rows or none.

    `before`: what an update contains of the old row: the `full` image, its `key` (the rest is NONE), or nothing.
    """

    source: Source = MYSQL
    schema: str = "v3"
    before: str = "full"
    marks: bool = False


_OPERATIONS = {"load": "INIT", "insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}


def rendered(changes: Iterable[ShopChange], form: Form = Form(), topic: str = "raw.t") -> list[Message]:
    """Return changes as the messages of one partition."""
    values = [value for change in changes for value in _values(change, form)]
    return [Message(topic, 0, offset, 0, None, value) for offset, value in enumerate(values)]


def messages(history: History, form: Form = Form()) -> list[Message]:
    """Return a history as DTS sends it."""
    return rendered(history.changes, form)


def _values(change: ShopChange, form: Form) -> Iterator[bytes]:
    common: dict[str, Any] = {
        "schema": form.schema,
        "source": form.source.name,
        "sourceTimestamp": millis(change.at) // 1000,
    }
    if form.marks:
        for operation in ("HEARTBEAT", "BEGIN"):
            yield compose(operation, objectName=None, **common)
    path = form.source.path.format(table=change.table.name.replace(".", "\\u002E"))
    yield _change(change, form, {**common, "objectName": path})
    if form.marks:
        for operation in ("COMMIT", "NOOP", "CHECKPOINT"):
            yield compose(operation, objectName=None, **common)


def _change(change: ShopChange, form: Form, common: dict[str, Any]) -> bytes:
    table = change.table
    if change.op == "add_column":
        column = table.columns[-1].name
        return compose("DDL", afterImages=f"ALTER TABLE {table.name} ADD COLUMN {column} varchar(100)", **common)
    keys = ",".join(f'"{name}"' for name in table.key)
    return compose(
        _OPERATIONS[change.op],
        fields=fields(**{column.name: form.source.kinds[column.kind][0] for column in table.columns}),
        tags={"pk_uk_info": f'{{"PRIMARY":[{keys}]}}', "readerThroughoutTime": str(millis(change.at))},
        beforeImages=_before(change, form),
        afterImages=_image(table, change.after, form.source),
        **common,
    )


def _before(change: ShopChange, form: Form) -> list[Cell] | None:
    image = _image(change.table, change.before, form.source)
    if image is None or change.op != "update" or form.before == "full":
        return image
    assert change.before is not None
    assert change.after is not None
    if form.before == "none" and all(change.before[name] == change.after[name] for name in change.table.key):
        return None
    names = [column.name for column in change.table.columns]
    return [cell if name in change.table.key else NONE for name, cell in zip(names, image, strict=True)]


def _image(table: ShopTable, row: Mapping[str, Any] | None, source: Source) -> list[Cell] | None:
    if row is None:
        return None
    cells = ((row[column.name], source.kinds[column.kind][1]) for column in table.columns)
    return [None if value is None else cell(value) for value, cell in cells]


def canonical(table: ShopTable, row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return the row as a consumer must get it."""
    return {
        column.name: None if row[column.name] is None else source.kinds[column.kind][2](row[column.name])
        for column in table.columns
    }


def translated(sent: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
    """Return the events of messages, none of which may become a dead letter."""
    translator = Translator("s", made(DtsAvro, Setup("s"), options), Limits())
    events: list[dict[str, Any]] = []
    for message in sent:
        result = translator.translate(message)
        assert not isinstance(result, DeadLetter), result
        if isinstance(result, Events):
            records = translator.encode(JsonCodec(), message, result)
            assert not isinstance(records, DeadLetter)
            events += [decode(record.value) for record in records]
    return events


def tables_of(events: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows of each table that a consumer derives from events, by key."""
    tables: dict[str, ReadTable] = {}
    for event in events:
        if event["kind"] == "row":
            tables.setdefault(event["table"], ReadTable()).apply(event)
    return {name: dict(table.rows) for name, table in tables.items()}
