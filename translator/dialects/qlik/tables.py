"""Which table a row belongs to and what is known about its columns, where no metadata message says it.

A default message names no table (formats/qlik.md section 0.6): the operator does, by topic, or the task was set up to
add the names to the message.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from translator.dialects._json import field
from translator.dialects._rows import Converters, ConvertersOr
from translator.dialects._tables import DeclaredTables
from translator.dialects.qlik.frame import Frame
from translator.envelope import TableSchema
from translator.errors import ConfigError, ErrorCode, MessageError, quote
from translator.message import Setup, TableName
from translator.values import converter

UNKNOWN = converter("unknown")

CACHED = 4096
"""Tables and topics kept at hand; beyond it the least used is looked up again."""


class Table(Struct, frozen=True):
    """What reading a row takes. `ordinals` come from metadata only; None: they are the places in the row."""

    name: TableName
    converters: Converters
    """A column that nobody declares is of type unknown."""
    schema: TableSchema | None = None
    key_columns: tuple[str, ...] = ()
    key_kind: str = "none"
    ordinals: dict[str, int] | None = None
    lobs: frozenset[str] = frozenset()
    """Columns that have no bit in a changeMask (section 5)."""
    server: str | None = None
    task: str | None = None


class UntypedTables:
    """Tables of messages without metadata: named by topic, else by the message; typed by `tables:`, else unknown."""

    def __init__(self, setup: Setup, topics: Mapping[str, str] | str | None) -> None:
        self._patterns = parse_topics(topics)
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._of_topic = lru_cache(CACHED)(self._match)
        self._of_name = lru_cache(CACHED)(self._build)

    def find(self, topic: str, frame: Frame) -> Table:
        """The table of a message.

        Raises:
            MessageError: TABLE_UNKNOWN.
        """
        name = self._of_topic(topic) or _named_by_message(frame)
        if name is None:
            raise MessageError(
                ErrorCode.TABLE_UNKNOWN,
                f"nothing names the table: no metadata, topic {quote(topic, 249)} is not in the option topics,"
                " and neither headers nor message have a member table",
                path=frame.path,
            )
        return self._of_name(name)

    def _match(self, topic: str) -> TableName | None:
        return next((name for pattern, name in self._patterns if fnmatch.fnmatchcase(topic, pattern)), None)

    def _build(self, name: TableName) -> Table:
        declared, schema = self._declared.find(name)
        columns = schema.columns if schema else ()
        key = declared.key if declared else ()
        return Table(
            name,
            ConvertersOr({column.name: converter(column.type) for column in columns}, UNKNOWN),
            schema,
            key_columns=key,
            key_kind="configured" if key else "none",
        )


def _named_by_message(frame: Frame) -> TableName | None:
    """Fields `schema` and `table` of the Message Format, in headers or beside them (section 1, User-added content).

    Not looked for in `data`: there they could as well be columns of the table.
    """
    headers: Mapping[str, Any] = frame.body["headers"]
    for section, path in ((headers, f"{frame.path}.headers"), (frame.body, frame.path)):
        table = field(section, "table", str, path, optional=True)
        if table:
            return TableName(None, field(section, "schema", str, path, optional=True) or None, table)
    return None


# -- the option topics

_ALLOWED_TOPICS = "allowed: SCHEMA.TABLE for every topic, or PATTERN=SCHEMA.TABLE separated by commas, or a mapping"


def parse_topics(given: Mapping[str, str] | str | None) -> tuple[tuple[str, TableName], ...]:
    """Topic patterns (`*`, `?`) with the table they carry; the first that matches counts.

    Raises:
        ConfigError: not one of the forms.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        pairs = [_pair(entry) for entry in given.split(",")] if "=" in given else [("*", given)]
    else:
        pairs = list(given.items())
    return tuple((pattern.strip(), _table_name(name)) for pattern, name in pairs)


def _pair(entry: str) -> tuple[str, str]:
    pattern, equals, name = entry.partition("=")
    if not equals or not pattern.strip():
        raise ConfigError(f"qlik: topics: {quote(entry)} is not PATTERN=SCHEMA.TABLE; {_ALLOWED_TOPICS}")
    return pattern, name


def _table_name(text: str) -> TableName:
    parts = text.strip().split(".")
    if len(parts) > 2 or not all(parts):
        raise ConfigError(f"qlik: topics: {quote(text)} is not SCHEMA.TABLE or TABLE; {_ALLOWED_TOPICS}")
    return TableName(None, parts[0] if len(parts) == 2 else None, parts[-1])
