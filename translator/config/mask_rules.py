"""Rules that mask columns (docs/masks.md): which columns a rule matches, by names and by type.

A rule that masks matches in doubt: names are compared without case, accents and invisible characters too, and levels of
a name that one side lacks count as equal. A rule that keeps a column as it is matches its very name only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from translator.config.table_filter import ANY, matcher

Action: TypeAlias = Literal["keep", "drop", "set_null", "hash", "truncate", "keep_last", "replace"]

Matcher: TypeAlias = Callable[[str], object]

UNKNOWN_TYPE = "unknown"
"""The canonical type of a column of which nobody declares one."""


class MaskRule(Struct, frozen=True, dict=True):
    """A rule as the operator writes it; its patterns have `*` for any characters and `?` for one."""

    action: Action
    source: str = ANY
    table: str = ANY
    column: str = ANY
    type: str = ANY
    length: int = 0
    """Characters that `truncate` and `keep_last` leave."""
    text: str = ""
    """Stands in for every value, of `replace`."""

    @property
    def masks(self) -> bool:
        """Say whether it is no exemption."""
        return self.action != "keep"

    def matches_source(self, source: str) -> bool:
        """Say whether it is for a source; its name is a word of the configuration, so that case counts."""
        return bool(matcher(self.source)(source))

    def matches_table(self, name: str) -> bool:
        """Say whether it is for a table by its full name, `db.schema.table` without absent levels."""
        matches, ends = self._of_table
        if not self.masks:
            return bool(matches(name))
        spellings = (name, folded(name))
        # Messages of one source may name levels that others leave out, and so may patterns.
        if any(matches(end) for spelled in spellings for end in (spelled, *_ends(spelled))):
            return True
        return any(of_end(spelled) for dots, of_end in ends for spelled in spellings if spelled.count(".") == dots)

    def matches_column(self, name: str) -> bool:
        """Say whether it is for a column."""
        return bool(self._of_column(name) or (self.masks and self._of_column(folded(name))))

    def matches_type(self, canonical: str | None) -> bool | None:
        """Say whether it is for columns of a canonical type; None: nobody knows the type, and it may be."""
        if self.type == ANY:
            return True
        if canonical is None or canonical == UNKNOWN_TYPE:
            return None
        return bool(self._of_type(canonical))

    @cached_property
    def _of_table(self) -> tuple[Matcher, list[tuple[int, Matcher]]]:
        """The matcher of the pattern; and of its ends, behind each of its dots, with the dots that they have."""
        return self._matcher(self.table), [(end.count("."), self._matcher(end)) for end in _ends(self.table)]

    @cached_property
    def _of_column(self) -> Matcher:
        return self._matcher(self.column)

    @cached_property
    def _of_type(self) -> Matcher:
        return matcher(self.type)

    def _matcher(self, pattern: str) -> Matcher:
        return _either(pattern) if self.masks else matcher(pattern)


def folded(name: str) -> str:
    """Return what a name has in common with all that people, or a database, may take for the same name."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    # C: invisible characters; M: marks, such as accents. A dotless i is the i of a Turkish upper case.
    kept = "".join(char for char in text if unicodedata.category(char)[0] not in "CM")
    return kept.replace("ı", "i").strip()


def _ends(name: str) -> Iterator[str]:
    """The name without its first levels."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _either(pattern: str) -> Matcher:
    """As written, or folded; `?` is one character of either."""
    written, loose = matcher(pattern), matcher(folded(pattern))
    return lambda name: written(name) or loose(name)
