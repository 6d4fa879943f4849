"""The one name of a source table: what every event, setting and command means by it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from cdc_core.envelope import TableSchema


def joined_name(db: str | None, schema: str | None, table: str | None) -> str:
    """The name of a table with points between its levels, without those that its source does not have."""
    return ".".join(part for part in (db, schema, table) if part)


class TableId(NamedTuple):
    """A table as its source names it."""

    source: str
    db: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        return "/".join(part if part is not None else "" for part in self)

    def fits(self, pattern: str) -> bool:
        """Tell whether a pattern over `source/db/schema/table`, with * and ?, means this table. Case counts."""
        return fnmatchcase(str(self), pattern)

    @classmethod
    def of(cls, schema: TableSchema) -> TableId:
        return cls(schema.source, schema.db, schema.schema, schema.table)
