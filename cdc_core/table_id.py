"""The identity of a source table in events, settings and commands."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from cdc_core.envelope import TableSchema


def joined_name(db: str | None, schema: str | None, table: str | None) -> str:
    """Return a table's name: the levels joined by dots, without any level that the source does not have."""
    return ".".join(part for part in (db, schema, table) if part)


class TableId(NamedTuple):
    """A table, identified by the names that its source uses."""

    source: str
    db: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        return "/".join(part if part is not None else "" for part in self)

    def fits(self, pattern: str) -> bool:
        """Return whether a pattern for `source/db/schema/table` matches this table. The pattern is case-sensitive and
        may contain * and ?.
        """
        return fnmatchcase(str(self), pattern)

    @classmethod
    def of(cls, schema: TableSchema) -> TableId:
        return cls(schema.source, schema.db, schema.schema, schema.table)
