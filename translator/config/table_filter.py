"""Select the tables that an output receives, by include and exclude patterns for sources and tables."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

ANY = "*"

_KEPT = 4096
"""Maximum number of tables for which results are cached. A limit is needed, because table names come from messages."""


def matcher(pattern: str) -> Callable[[str], object]:
    """Return a predicate for names that match a pattern: `*` matches any characters, `?` matches one."""
    # fnmatch also treats `[` as special, but these patterns support only `*` and `?`.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match


class TableChoice(Struct, frozen=True):
    """A pattern for the tables of a source. `table` matches `db.schema.table`, without any level that the source does
    not have.
    """

    source: str = ANY
    table: str = ANY


class TableFilter:
    """A selection of tables. Events without a table (transaction markers, watermarks) are selected by their source.

    Args:
        include: select only these tables. () selects all.
        exclude: patterns for tables that are not selected, even if they are included.
        tables_only: whether events without a table are not selected.
    """

    def __init__(
        self, include: Sequence[TableChoice] = (), exclude: Sequence[TableChoice] = (), *, tables_only: bool = False
    ) -> None:
        self._tables_only = tables_only
        self._include = [(matcher(one.source), matcher(one.table)) for one in include]
        self._exclude = [(matcher(one.source), matcher(one.table), one.table == ANY) for one in exclude]
        self._found: dict[tuple[str, str | None, str | None, str | None], bool] = {}

    def takes(self, source: str, db: str | None, schema: str | None, table: str | None) -> bool:
        """Return whether a table's events are selected. Without `table`, return whether events without a table are
        selected.
        """
        names = source, db, schema, table
        found = self._found.get(names)
        if found is None:
            if len(self._found) >= _KEPT:
                self._found.clear()
            name = None if table is None else ".".join(level for level in (db, schema, table) if level)
            found = self._found[names] = self._decide(source, name)
        return found

    def _decide(self, source: str, name: str | None) -> bool:
        if name is None and self._tables_only:
            return False
        included = not self._include or any(
            of_source(source) and (name is None or of_table(name)) for of_source, of_table in self._include
        )
        return included and not any(
            of_source(source) and (any_table if name is None else of_table(name))
            for of_source, of_table, any_table in self._exclude
        )
