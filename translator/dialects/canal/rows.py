"""Check the parts of a row message: `data`, `old`, `mysqlType` and `pkNames` (§1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from msgspec import Struct

from translator.dialects._json import JsonObject, field, json_type
from translator.dialects._source_text import SentJson
from translator.dialects.canal.layout import Types
from translator.dialects.canal.values import JsonCell
from translator.dialects.canal.variant import OldRow, Row
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits

_TEXT_OR_NULL = frozenset({str, NoneType})
_NESTED = frozenset({dict, list})


class RowForm(Struct, frozen=True):
    """The ways in which the declared writer may deviate from an array of rows with text cells.

    `native_cells`: cells with any JSON type. `objects`: one row without its array.
    """

    native_cells: bool = False
    objects: bool = False


def read_data(body: JsonObject, limits: Limits, form: RowForm, source: SentJson) -> list[Row]:
    """Return the rows in `data`, or `[]` if it is empty. `source` is the message text."""
    rows: list[Row] = []
    sent = _array(body, "data", limits, form)
    for index, row in enumerate(sent):
        path = f"$.data[{index}]"
        if not isinstance(row, dict):
            raise MessageError(ErrorCode.INVALID_FIELD, f"a row is a JSON {json_type(row)}, not an object", path=path)
        rows.append(_checked(row, path, limits, form, source))
    if not any(rows):
        return []
    if not all(rows):
        # canal leaves out rows without columns (§4.4), so something emptied this row on the way.
        raise MessageError(ErrorCode.INVALID_FIELD, "a row has no columns", path=f"$.data[{rows.index({})}]")
    return rows


def read_old(body: JsonObject, limits: Limits, form: RowForm, source: SentJson) -> list[OldRow]:
    """Return the entries in `old`. An entry that is null or `{}` has no known changes."""
    rows: list[OldRow] = []
    for index, row in enumerate(_array(body, "old", limits, form)):
        path = f"$.old[{index}]"
        if row is not None and not isinstance(row, dict):
            raise MessageError(ErrorCode.INVALID_FIELD, f"a row is a JSON {json_type(row)}, not an object", path=path)
        rows.append(row and _checked(row, path, limits, form, source))
    return rows


def _array(body: JsonObject, name: str, limits: Limits, form: RowForm) -> list[Any]:
    if isinstance(body.get(name), dict):
        if form.objects:
            return [body[name]]
        reason = f"{name} is a JSON object, not an array; if SeaTunnel's sink is the writer, set object_rows: true"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.{name}")
    rows: list[Any] = field(body, name, list, "$", optional=True) or []
    if len(rows) > limits.rows:
        reason = f"{name} has {len(rows)} rows, but only {limits.rows} are allowed (limits.rows)"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path=f"$.{name}")
    return rows


def _checked(row: Mapping[str, object], path: str, limits: Limits, form: RowForm, source: SentJson) -> Row:
    """Check a row against the limits and the declared writer's cell types (§7.1)."""
    _check_width(row, path, limits)
    if form.native_cells:
        return row if _NESTED.isdisjoint(map(type, row.values())) else _nested_as_text(row, source)
    if not _TEXT_OR_NULL.issuperset(map(type, row.values())):
        name, cell = next((name, cell) for name, cell in row.items() if type(cell) not in _TEXT_OR_NULL)
        reason = (
            f"column {quote(name)} is a JSON {json_type(cell)}, but canal, DTS and TiCDC only write strings and "
            "null. If the writer is Flink, Flink CDC or SeaTunnel, declare profile flink_cdc. If it is Tencent's "
            "CKafka connector, declare ckafka"
        )
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
    return row


def _nested_as_text(row: Mapping[str, object], source: SentJson) -> Row:
    return {name: JsonCell(source.text(cell) or "") if type(cell) in _NESTED else cell for name, cell in row.items()}


def _check_width(columns: Mapping[str, object], path: str, limits: Limits) -> None:
    if len(columns) > limits.columns:
        reason = f"the row has {len(columns)} columns, but only {limits.columns} are allowed (limits.columns)"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path=path)


def read_types(body: JsonObject, limits: Limits) -> Types:
    """Return `mysqlType` in order. The field may be missing, and so may a column's type (§7.3)."""
    types = field(body, "mysqlType", dict, "$", optional=True) or {}
    _check_width(types, "$.mysqlType", limits)
    if not _TEXT_OR_NULL.issuperset(map(type, types.values())):
        name, text = next((name, text) for name, text in types.items() if type(text) not in _TEXT_OR_NULL)
        reason = f"the type of column {quote(name)} is a JSON {json_type(text)}, not a string"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path="$.mysqlType")
    return tuple((name, text or "") for name, text in types.items())


def read_pk_names(body: JsonObject, limits: Limits) -> tuple[str, ...]:
    """Return `pkNames`, which is null if the table has no key or the key columns are not in the image (§2)."""
    names = field(body, "pkNames", list, "$", optional=True) or []
    for index, name in enumerate(names):
        if not isinstance(name, str):
            reason = f"the name of a key column is a JSON {json_type(name)}, not a string"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path=f"$.pkNames[{index}]")
    if len(set(names)) < len(names):
        raise MessageError(ErrorCode.INVALID_FIELD, "a key column is listed twice", path="$.pkNames")
    if len(names) > limits.columns:
        reason = f"the message has {len(names)} key columns, but only {limits.columns} are allowed (limits.columns)"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason, path="$.pkNames")
    return tuple(names)


KEY_NAME_CASE = "KEY_NAME_CASE"
"""Note `KEY_NAME_CASE=col`: the column's name in `pkNames` differs in case."""


def fit_key(pk_names: tuple[str, ...], row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the key columns as the row spells them, and notes. If a name is not a column, it is replaced by the only
    column whose name differs from it in case alone. If no column or several columns match, the name stays as it is.
    """
    if all(name in row for name in pk_names):
        return pk_names, ()
    fitted: list[str] = []
    notes: list[str] = []
    for name in pk_names:
        found = [column for column in row if column.lower() == name.lower()] if name not in row else []
        if len(found) == 1 and found[0] not in pk_names and found[0] not in fitted:
            notes.append(f"{KEY_NAME_CASE}={found[0]}")
            fitted += found
        else:
            fitted.append(name)
    return tuple(fitted), tuple(notes)
