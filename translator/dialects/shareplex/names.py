"""Convert `meta.table` to a table name, and find out what is known about that table."""

from __future__ import annotations

import re

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._rows import Converters, ConvertersOr
from translator.errors import ErrorCode, MessageError, quote
from translator.message import TableName
from translator.values import converter

_PART = r'"[^"]+"|[^".]+'
_TABLE = re.compile(rf'({_PART})\.("[^"]+"|(?!\.)[^"]+(?<!\.))|({_PART})')


def split_table(raw: str, path: str) -> TableName:
    """Parse `OWNER.TABLE`, split at the first dot outside quotes. Without a dot, the owner is None.

    Quotes are SQL notation for a name that keeps its case. They are not part of the name (§6: the route can map to
    `"MySchema2"."MyTable2"`).

    Raises:
        MessageError: INVALID_FIELD, because of an empty part or an unpaired quote.
    """
    match = _TABLE.fullmatch(raw)
    if match is None:
        reason = f'table {quote(raw)} is not a valid name; expected OWNER.TABLE or "Owner"."Table"'
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
    owner, table, alone = match.groups()
    return TableName(None, owner and owner.strip('"'), (table or alone).strip('"'))


class Table(Struct, frozen=True):
    """A compiled table with its declaration. A message needs one look-up, and each of its cells needs one call."""

    name: TableName
    key: tuple[str, ...]
    schema: TableSchema | None
    key_set: frozenset[str]
    columns: frozenset[str]
    """The declared columns; empty if `schema` is None."""

    converters: Converters
    """Converters. An undeclared column keeps its text (type `unknown`)."""

    @property
    def key_kind(self) -> str:
        """The envelope's keyword for a key that the operator declares."""
        return "configured" if self.key else "none"


_UNKNOWN = converter("unknown")
"""Converters that return text unchanged."""


def compile_table(name: TableName, declared_tables: DeclaredTables) -> Table:
    """Return the table with its declaration from `tables:`."""
    declared, schema = declared_tables.find(name)
    columns = schema.columns if schema else ()
    key = declared.key if declared else ()
    converters = {column.name: converter(column.type) for column in columns}
    return Table(
        name=name,
        key=key,
        key_set=frozenset(key),
        schema=schema,
        columns=frozenset(converters),
        converters=ConvertersOr(converters, _UNKNOWN),
    )
