"""Decode one message from Maxwell: a row, or a statement from its topic for DDL.

Maxwell writes the columns' values without their types. An update contains the new row in `data`, and in `old` the
columns that changed, with their old values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Struct

from translator.dialect_api import (
    Changes,
    Ddl,
    DialectPlugin,
    ErrorCode,
    Message,
    MessageError,
    OtherChange,
    ReadMessage,
    Recognizer,
    RowChange,
    Setup,
    Skip,
    TableName,
    Tx,
    Writer,
    check_distinct,
    field,
    masked_json,
    parse_object,
)

OPERATIONS: Mapping[str, str] = {"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": "r"}
MARKS = ("bootstrap-start", "bootstrap-complete")
STATEMENTS = (
    *("table-create", "table-alter", "table-drop"),
    *("database-create", "database-alter", "database-drop"),
)
_MOST_ZEROS = 1000
_JSON = msgspec.json.Encoder(decimal_format="number")
_TYPES = (*OPERATIONS, *MARKS, *STATEMENTS)


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a source."""

    fractions: Literal["text", "number"] = "text"
    """The canonical form of numbers with a fraction. Maxwell does not distinguish DECIMAL from DOUBLE, and only text
    is exact.
    """


class Maxwell:
    """Decodes Maxwell's JSON."""

    name = "maxwell"

    def __init__(self, setup: Setup, options: Options) -> None:
        self._limits = setup.limits
        self._declared = setup.tables
        self._fraction = _plain if options.fractions == "text" else _double

    def decode(self, message: Message) -> Changes | Skip:
        """Return the only change in a message."""
        if not message.value:
            return Skip("tombstone")
        body = self._parsed(message.value)
        type_ = field(body, "type", str, "$")
        if type_ in MARKS:
            return Skip(type_.replace("-", "_"))
        if type_ in STATEMENTS:
            return Changes([_statement(body, type_)])
        if type_ not in OPERATIONS:
            raise MessageError(ErrorCode.UNKNOWN_OPERATION, f"type is none of {', '.join(_TYPES)}", path="$.type")
        return Changes([self._row(body, OPERATIONS[type_])])

    def learn(self, key: str, document: bytes) -> object:
        """Learn nothing, because the messages describe themselves."""
        raise MessageError(ErrorCode.SCHEMA_MISSING, "Maxwell has no metadata messages")

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the table of a message that was rejected."""
        return [_table(self._parsed(message.value or b""))]

    def _parsed(self, value: bytes) -> dict[str, Any]:
        body = parse_object(value, self._limits)
        check_distinct(value, [body])
        return body

    def _row(self, body: Mapping[str, Any], operation: str) -> RowChange:
        change = RowChange(operation, _table(body), _writer(body))
        data, old = self._image(body, "data"), self._image(body, "old")
        if data is None:
            raise MessageError(ErrorCode.MISSING_FIELD, "a row has no data", path="$.data")
        if operation == "d":
            change.before = data
        else:
            change.after = data
        if operation == "u":
            if old is None:
                raise MessageError(ErrorCode.MISSING_FIELD, "an update has no old values", path="$.old")
            change.before, change.before_sparse, change.changed = old, True, [*old]
        change.key_columns, change.key_kind = self._key(body, change.table)
        change.ts_commit_us = field(body, "ts", int, "$") * 1_000_000
        change.tx = _transaction(body)
        return change

    def _image(self, body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
        sent = field(body, name, dict, "$", optional=True)
        if sent is None:
            return None
        return {column: self._canonical(value) for column, value in sent.items()}

    def _canonical(self, value: object) -> object:
        if isinstance(value, Decimal):
            return self._fraction(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return str(value)
        # Maxwell writes JSON columns as JSON, and SET columns as arrays.
        return _JSON.encode(value).decode() if isinstance(value, (dict, list)) else value

    def _key(self, body: Mapping[str, Any], table: TableName) -> tuple[tuple[str, ...], str]:
        """Return the key that Maxwell sends (`output_primary_key_columns`) or, otherwise, the declared one."""
        sent = field(body, "primary_key_columns", list, "$", optional=True)
        if sent and all(isinstance(column, str) for column in sent):
            return tuple(sent), "primary"
        name = f"{table.db}.{table.table}"
        declared = (one.key for one in self._declared if fnmatchcase(name, one.table))
        key = next(declared, ())
        return key, "configured" if key else "none"


def _plain(number: Decimal) -> str:
    if abs(int(number.as_tuple().exponent)) > _MOST_ZEROS:
        raise MessageError(ErrorCode.INVALID_FIELD, f"a number has an exponent beyond {_MOST_ZEROS}", path="$.data")
    return f"{number:f}"


def _double(number: Decimal) -> float:
    if not math.isfinite(found := float(number)):
        raise MessageError(ErrorCode.INVALID_FIELD, "a number is too large for a double", path="$.data")
    return found


def _table(body: Mapping[str, Any]) -> TableName:
    return TableName(field(body, "database", str, "$"), None, field(body, "table", str, "$"))


def _writer(body: Mapping[str, Any]) -> Writer:
    server = field(body, "server_id", int, "$", optional=True)
    return Writer(dbms="mysql", server=None if server is None else str(server))


def _transaction(body: Mapping[str, Any]) -> Tx | None:
    """Return the transaction. Maxwell numbers its rows from 0, and marks the last one instead of numbering it."""
    number = field(body, "xid", int, "$", optional=True)
    if number is None:
        return None
    offset = field(body, "xoffset", int, "$", optional=True)
    last = field(body, "commit", bool, "$", optional=True)
    return Tx(str(number), None if offset is None else offset + 1, last=last)


def _statement(body: Mapping[str, Any], type_: str) -> OtherChange:
    database = field(body, "database", str, "$", optional=True)
    table = field(body, "table", str, "$", optional=True)
    change = OtherChange("schema", _writer(body), db=database)
    change.table = None if table is None else TableName(database, None, table)
    change.ddl = Ddl(type_, field(body, "sql", str, "$", optional=True))
    change.ts_commit_us = field(body, "ts", int, "$") * 1000
    return change


def _part_of(path: tuple[str, ...]) -> str:
    if path[:1] == ("sql",):
        return "statement"
    return "value" if path[:1] in (("data",), ("old",), ("primary_key",)) else "keep"


def _propose(sample: Sequence[ReadMessage]) -> list[Any]:
    return []


PLUGIN = DialectPlugin(
    name=Maxwell.name,
    api=1,
    build=Maxwell,
    options=Options,
    recognizer=Recognizer(({},), _propose),
    masked_value=partial(masked_json, part_of=_part_of),  # type: ignore[arg-type]  # its words are literals
)
