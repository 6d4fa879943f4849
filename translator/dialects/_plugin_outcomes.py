"""Copy the results of a plug-in. Check that every field has its declared type and an allowed value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
from msgspec import Struct

from cdc_core.envelope import KEY_KINDS, TableSchema
from translator.dialects._plugin_calls import BrokenRule
from translator.errors import ErrorCode, MessageError
from translator.message import (
    Change,
    Changes,
    Image,
    Learned,
    Limits,
    Needs,
    OtherChange,
    Outcome,
    RowChange,
    Skip,
    TableName,
)
from translator.values import converter

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

_SCALARS = frozenset((str, int, float, bool, type(None)))
_NOTE = re.compile(r"[A-Z][A-Z0-9_]*(=.*)?", re.ASCII | re.DOTALL)
_PLACE = re.compile(r"at `\$\.?([^`]*)`")


class OutcomeCopies:
    """Copies the outcomes of one source's dialect.

    All methods raise BrokenRule for a result outside the interface. They raise MessageError if a result exceeds a
    limit, or has an empty name or a number beyond 64 bits. Such a result is the message's fault.
    """

    def __init__(self, source: str, limits: Limits) -> None:
        self._source = source
        self._limits = limits

    def outcome(self, outcome: object) -> Outcome:
        """Return a copy of the result of `decode`."""
        if isinstance(outcome, Changes):
            return Changes([self._change(change) for change in self._few(outcome.changes)])
        if isinstance(outcome, Skip):
            return copied(outcome, Skip)
        if isinstance(outcome, Learned):
            announces = tuple(self._change(change) for change in self._few(outcome.announces))
            return copied(Learned(outcome.key, outcome.document, announces), Learned)  # type: ignore[arg-type]
        if isinstance(outcome, Needs):
            if outcome.schema_text is not None:
                raise BrokenRule("Needs has schema_text, which only outputs use")
            return copied(outcome, Needs)
        raise BrokenRule(f"decode returned {type(outcome).__name__} instead of an outcome")

    def tables(self, tables: Iterable[TableName]) -> list[TableName]:
        """Return copies of the result of `tables`."""
        return [copied(table, TableName) for table in self._few(tables)]

    def _few(self, parts: Iterable[T]) -> Iterator[T]:
        for count, part in enumerate(parts, 1):
            if count > self._limits.rows:
                reason = f"the message has more than {self._limits.rows} changes (limits.rows)"
                raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
            yield part

    def _change(self, change: object) -> Change:
        if isinstance(change, RowChange):
            _check_image(change.before)
            _check_image(change.after)
            row = copied(change, RowChange)
            _check_row(row)
            row.schema = self._schema(row.schema, row.table)
            return row
        if isinstance(change, OtherChange):
            _check_image(change.after)
            other = copied(change, OtherChange)
            _check_notes(other.notes)
            other.schema = self._schema(other.schema, other.table)
            return other
        raise BrokenRule(f"a change is a {type(change).__name__}")

    def _schema(self, schema: TableSchema | None, table: TableName | None) -> TableSchema | None:
        """Return the schema under its table's name and with its real fingerprint, which identifies it for consumers."""
        if schema is None:
            return None
        if table is None:
            raise BrokenRule("a change has a schema but no table")
        _check_key_kind(schema.key_kind)
        _check_names("column", [column.name for column in schema.columns])
        for column in schema.columns:
            _check_type(column.type)
        return TableSchema.of(self._source, table.db, table.schema, table.table, schema.columns, schema.key_kind)


def copied(part: Struct, kind: type[S]) -> S:
    """Return a checked copy of one element of an outcome. Structs do not check the types of their fields, but decoding
    does."""
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=kind)
    except MessageError:
        raise
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        raise _wrong_type(kind, place[1] if place else None) from None
    except OverflowError:
        # Dialects pass numbers on as they are in the message.
        reason = f"{_whole(kind, _not_encodable(part))} has a whole number beyond 64 bits"
        raise MessageError(ErrorCode.INVALID_FIELD, reason) from None
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        raise _wrong_type(kind, _not_encodable(part)) from None


def _not_encodable(part: object) -> str | None:
    return next((name for name in getattr(part, "__struct_fields__", ()) if not _can_be_encoded(part, name)), None)


def _can_be_encoded(part: object, name: str) -> bool:
    try:
        msgspec.msgpack.encode(getattr(part, name))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


def _wrong_type(kind: type, field: str | None) -> BrokenRule:
    return BrokenRule(f"{_whole(kind, field)} does not have its declared type")


def _whole(kind: type, field: str | None) -> str:
    return f"{kind.__name__}.{field}" if field else f"a field of {kind.__name__}"


def _check_image(image: Image | None) -> None:
    for name, value in (image or {}).items():
        if not isinstance(name, str) or type(value) not in _SCALARS:
            kinds = f"{type(name).__name__} to {type(value).__name__}"
            raise BrokenRule(f"an image maps {kinds}, not a column to a scalar")
        if type(value) is float and not math.isfinite(value):
            raise BrokenRule("an image has a number that is not finite; leave the column out or reject the message")


def _check_row(change: RowChange) -> None:
    _check_key_kind(change.key_kind)
    _check_notes(change.notes)
    _check_names("table", [change.table.table])
    _check_names("column", [*(change.before or ()), *(change.after or ()), *change.key_columns])
    for type_ in (change.types or {}).values():
        _check_type(type_)
    if change.row < 0 or change.rows < 1:
        raise BrokenRule("RowChange.row is negative, or RowChange.rows is less than 1")


def _check_key_kind(kind: str) -> None:
    if kind not in KEY_KINDS:
        raise BrokenRule(f"a key_kind is not one of {', '.join(KEY_KINDS)}")


def _check_type(type_: str) -> None:
    try:
        converter(type_)
    except ValueError:
        raise BrokenRule("the type of a column is not a canonical type (docs/envelope/values.md)") from None


def _check_notes(notes: list[str] | None) -> None:
    for note in notes or ():
        if not _NOTE.fullmatch(note):
            raise BrokenRule("a note is not a word of capital letters, digits and underscores, with or without `=text`")


def _check_names(what: str, names: Iterable[str]) -> None:
    """Reject a message with an empty name. Dialects take names from messages."""
    if not all(names):
        raise MessageError(ErrorCode.INVALID_FIELD, f"the name of a {what} is empty")
