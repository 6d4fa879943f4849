"""Describe a source's common row messages that the native path supports, and find the tables for reading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from translator._native.layout import (
    LayoutColumn,
    LayoutOperation,
    NativeLayout,
    NativeReader,
    RecordForm,
    SharePlexReading,
)
from translator.dialects.shareplex.instants import Instants
from translator.dialects.shareplex.names import Table
from translator.dialects.shareplex.options import SharePlexRules
from translator.errors import MessageError
from translator.message import Limits, Writer
from translator.values import converter
from translator.values.native_kinds import native_kind

_OPERATIONS = {"ins": "c", "upd": "u", "del": "d"}
"""The supported operations, in the extension's order, with their letters."""

_WORDS: Mapping[str, str] = {
    "INSERT": "ins",
    "UPDATE": "upd",
    "DELETE": "del",
    "INS": "ins",
    "UPD": "upd",
    "DEL": "del",
}
"""The documented keywords and the codes in upper case. The plain path reads other forms."""

DEPTH = 2
"""A common message's nesting depth: the root object, and an object inside it."""


class SharePlexNativeRows:
    """The dialect's support for the native path, for one source."""

    def __init__(
        self,
        rules: SharePlexRules,
        instants: Instants,
        limits: Limits,
        table: Callable[[str], Table],
        writer: Callable[[str | None], Writer],
    ) -> None:
        self._instants = instants
        self._table = table
        self._writer = writer
        numbers = {operation: number for number, operation in enumerate(_OPERATIONS)}
        self._reading = SharePlexReading(
            {msgspec.json.encode(word): numbers[meaning] for word, meaning in _row_words(rules).items()},
            rules.decimal_scn,
            rules.key_is_key,
            limits.value_bytes,
            limits.columns,
        )

    def open(self, form: RecordForm) -> NativeReader:
        """Return the extension's reader. The extension must be installed."""
        from translator._native import rows

        return rows.SharePlexRows(self._reading, form, form.compiler(self.layout), self._instants.of)

    def layout(self, table: bytes, host: bytes) -> NativeLayout | None:
        """Return a table's layout, from the table name and the messages' host, both as JSON. Empty text means no host.

        If it returns None, the table is left to the plain path.

        Raises:
            ValueError: the arguments are not names in JSON.
        """
        try:
            found = self._table(msgspec.json.decode(table, type=str))
        except MessageError:
            return None
        writer = self._writer(msgspec.json.decode(host, type=str) if host else None)
        columns = found.schema.columns if found.schema else ()
        return NativeLayout(
            found.name,
            tuple(_column(column.name, column.type) for column in columns),
            found.key,
            found.key_kind,
            found.schema,
            (tuple(LayoutOperation(op, writer, with_schema=True, notes=()) for op in _OPERATIONS.values()),),
            None if columns else _column("", "unknown"),
        )


def _row_words(rules: SharePlexRules) -> dict[str, str]:
    """Return the keywords for row operations, spelled exactly like this, each with its operation."""
    return {word: meaning for word, meaning in {**_WORDS, **rules.operations}.items() if meaning in _OPERATIONS}


def _column(name: str, type_: str) -> LayoutColumn:
    convert = converter(type_)
    return LayoutColumn(name, native_kind(type_, convert), convert)
