"""Describe a source's common row messages that the native path supports, and compile the layouts for reading them.

This includes only messages from a declared writer whose rows contain all columns. All others take the plain path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from translator._native.layout import (
    CanalReading,
    LayoutColumn,
    LayoutOperation,
    NativeEra,
    NativeLayout,
    NativeReader,
    RecordForm,
)
from translator.dialects._json import check_distinct, parse
from translator.dialects.canal.envelope_fields import DBMS
from translator.dialects.canal.heartbeat import HeartbeatTables
from translator.dialects.canal.layout import Layout, Layouts
from translator.dialects.canal.marks import MARKED_BY_VALUES
from translator.dialects.canal.options import Options
from translator.dialects.canal.profile import PROFILES
from translator.dialects.canal.rows import read_pk_names, read_types
from translator.dialects.canal.types import UNKNOWN
from translator.dialects.canal.values import time_of_day, within
from translator.dialects.canal.variant import ERAS_BY_MARK, SWAP_OLD_DATA, Era, EraSpan, era_spans
from translator.errors import MessageError
from translator.message import Limits, TableName, Writer
from translator.values import converter
from translator.values.native_kinds import NativeKind, integers_within, native_kind
from translator.values.scalar import Converter

DEPTH = 3
"""A common message's nesting depth: the object, an array of rows, a row."""


class CanalNativeRows:
    """The dialect's support for the native path, for one source.

    Args:
        is_checked: whether the continuity check is on.
    """

    def __init__(
        self,
        options: Options,
        limits: Limits,
        heartbeats: HeartbeatTables,
        layouts: Layouts,
        *,
        is_checked: bool,
    ) -> None:
        by_mark = options.profile == "auto"
        spans = [EraSpan(0, 0, era) for era in ERAS_BY_MARK] if by_mark else era_spans(options)
        self._eras = [span.era for span in spans]
        self._limits = limits
        self._heartbeats = heartbeats
        self._layouts = layouts
        profile = PROFILES[options.profile]
        self._reading = CanalReading(
            tuple(map(_era, spans)),
            by_mark,
            options.profile in MARKED_BY_VALUES,
            profile.tidb,
            profile.native_cells,
            profile.alibaba,
            limits.value_bytes,
            limits.rows,
            is_checked,
            profile.changed_alone,
        )

    def open(self, form: RecordForm) -> NativeReader:
        """Return the extension's reader. The extension must be installed."""
        from translator._native import rows

        return rows.CanalRows(self._reading, form, form.compiler(self.layout))

    def layout(
        self, database: bytes, table: bytes, types: bytes, sql_types: bytes, key: bytes, columns: bytes
    ) -> NativeLayout | None:
        """Return the layout for the bytes that describe a table in a message, or None for the plain path.

        Args:
            columns: the names of the row's columns, if `types` does not describe them.

        Raises:
            ValueError: the bytes are not names in JSON.
        """
        db = msgspec.json.decode(database, type=str | None) or None
        name = TableName(db, None, msgspec.json.decode(table, type=str))
        try:
            self._parsed(sql_types or b"{}")  # the value is not used, but it could be invalid
            body = {"mysqlType": self._parsed(types or b"{}"), "pkNames": msgspec.json.decode(key)}
            found = self._layouts.of(name, read_types(body, self._limits), read_pk_names(body, self._limits))
        except MessageError:
            return None
        if found.table in self._heartbeats:
            return None
        row = _untyped_row(found, msgspec.json.decode(columns, type=list[str])) if columns else _typed_row(found)
        if not 0 < len(row) <= self._limits.columns or not row.keys() >= set(found.key_columns):
            return None
        return NativeLayout(
            found.table,
            tuple(_column(name, type_, found.columns.converter(name)) for name, type_ in row.items()),
            found.key_columns,
            found.key_kind,
            found.schema,
            tuple(_operations(era, found.notes) for era in self._eras),
        )

    def _parsed(self, text: bytes) -> object:
        """Return the parsed value of an object without nesting, or of null."""
        limits = msgspec.structs.replace(self._limits, json_depth=1)
        parsed = parse(text, limits)
        check_distinct(text, parsed)
        return parsed


def _typed_row(found: Layout) -> Mapping[str, str]:
    """Return the columns described by a message, in order, with their canonical types. Empty for the plain path."""
    if found.schema is None or found.columns.names != found.schema.column_names:
        return {}
    return {column.name: column.type for column in found.schema.columns}


def _untyped_row(found: Layout, names: Sequence[str]) -> Mapping[str, str]:
    """Return these columns in order, with their declared types. The result is empty if a row has undeclared columns,
    because these need notes of their own.
    """
    known = found.columns.names
    return {name: found.types.get(name, UNKNOWN.type) for name in names} if not known or known >= set(names) else {}


def _era(span: EraSpan) -> NativeEra:
    era = span.era
    return NativeEra(
        span.low,
        span.high,
        data_is_before=era.data_is == "before",
        deleted_in_old=era.variant == "dts_legacy" or era.deleted_in_old,
        is_ambiguous=era.data_is is None,
    )


def _operations(era: Era, notes: tuple[str, ...]) -> Sequence[LayoutOperation | None]:
    """Return each type's events, according to the rules in `variant.py` for messages without contradictions."""
    declared = Writer(era.variant, era.basis, DBMS)
    # The row of a delete is in the field that only this format uses for it.
    deleted = Writer(era.variant, "certain", DBMS) if era.alibaba else declared
    swap = (SWAP_OLD_DATA,) if era.data_is == "before" else ()
    return (
        LayoutOperation("c", declared, with_schema=True, notes=notes),
        LayoutOperation("u", declared, with_schema=True, notes=(*notes, *swap)),
        LayoutOperation("d", deleted, with_schema=False, notes=notes),
    )


def _column(name: str, type_: str, convert: Converter | None) -> LayoutColumn:
    return LayoutColumn(name, _kind(type_, convert), convert)


def _kind(type_: str, convert: Converter | None) -> NativeKind:
    if isinstance(convert, partial) and convert.func is within:
        low, high, _ = convert.args
        return integers_within(low, high)
    return native_kind(type_, converter("time") if convert is time_of_day else convert)
