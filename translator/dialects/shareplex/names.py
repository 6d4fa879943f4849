"""`meta.table` -> table name, and what is known about that table."""

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
    """`OWNER.TABLE`, split at the first dot outside quotes; without a dot there is no owner.

    Quotes are SQL notation around a name that keeps its case, not part of it (§6: the
    route may map to `"MySchema2"."MyTable2"`).

    Raises:
        MessageError: INVALID_FIELD, an empty part or an unpaired quote.
    """
    match = _TABLE.fullmatch(raw)
    if match is None:
        reason = f'table {quote(raw)} is not a name such as OWNER.TABLE or "Owner"."Table"'
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
    owner, table, alone = match.groups()
    return TableName(None, owner and owner.strip('"'), (table or alone).strip('"'))


class Table(Struct, frozen=True):
    """A table with its declaration, compiled: one look-up per message, one call per cell."""

    name: TableName
    key: tuple[str, ...]
    schema: TableSchema | None
    key_set: frozenset[str]
    columns: frozenset[str]
    """The declared columns; empty when `schema` is None."""

    converters: Converters
    """A column that nobody declares keeps its text (type `unknown`)."""

    of_text: Converters
    """The same for text that UTF-8 can carry: None where it stays as it is."""

    @property
    def key_kind(self) -> str:
        """The envelope's name for a key that the operator declares."""
        return "configured" if self.key else "none"


_UNKNOWN = converter("unknown")
_TEXT = (_UNKNOWN, converter("string"))
"""Converters that return text as they get it."""


def compile_table(name: TableName, declared_tables: DeclaredTables) -> Table:
    """The table with what `tables:` declares about it."""
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
        of_text=ConvertersOr({n: None if convert in _TEXT else convert for n, convert in converters.items()}, None),
    )
