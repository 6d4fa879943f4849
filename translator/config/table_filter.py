"""The tables that an output gets: patterns over sources and tables, to include and to exclude."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

ANY = "*"

_KEPT = 4096
"""Tables whose answer is kept: their names come out of messages."""


def matcher(pattern: str) -> Callable[[str], object]:
    """Return what is true of the names that a pattern means: `*` stands for any characters, `?` for one."""
    # fnmatch's third special character, `[`, is none of ours.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match


class TableChoice(Struct, frozen=True):
    """Tables of sources: `table` is a pattern over `db.schema.table`, without levels that the source does not have."""

    source: str = ANY
    table: str = ANY


class TableFilter:
    """A choice of tables. What is of no table (marks of transactions, watermarks) goes with its source.

    Args:
        include: nothing else is taken; () is everything.
        exclude: not taken, even where it is included.
        tables_only: what is of no table is not taken.
    """

    def __init__(
        self, include: Sequence[TableChoice] = (), exclude: Sequence[TableChoice] = (), *, tables_only: bool = False
    ) -> None:
        self._tables_only = tables_only
        self._include = [(matcher(one.source), matcher(one.table)) for one in include]
        self._exclude = [(matcher(one.source), matcher(one.table), one.table == ANY) for one in exclude]
        self._found: dict[tuple[str, str | None, str | None, str | None], bool] = {}

    def takes(self, source: str, db: str | None, schema: str | None, table: str | None) -> bool:
        """Say whether events of a table are taken; without `table`, those of none."""
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
