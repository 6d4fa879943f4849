"""Rules that mask columns (docs/masks.md): which columns a rule matches, by name and by type.

If in doubt, a masking rule matches. Such a rule also ignores case, accents and invisible characters. A name level that
is missing on one side matches any name. A rule that keeps a column matches only the exact name of the column.
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
"""The canonical type of columns whose type is not declared anywhere."""


class MaskRule(Struct, frozen=True, dict=True):
    """A rule as written in the configuration. In its patterns, `*` matches any characters and `?` matches one."""

    action: Action
    source: str = ANY
    table: str = ANY
    column: str = ANY
    type: str = ANY
    length: int = 0
    """Number of characters that `truncate` and `keep_last` keep."""
    text: str = ""
    """Text that `replace` puts in place of every value."""

    @property
    def masks(self) -> bool:
        """Return whether the rule masks its columns. If not, it exempts them."""
        return self.action != "keep"

    def matches_source(self, source: str) -> bool:
        """Return whether the rule applies to a source. Source names come from the configuration, so case matters."""
        return bool(matcher(self.source)(source))

    def matches_table(self, name: str) -> bool:
        """Return whether the rule applies to a table with this full name: `db.schema.table` without absent levels."""
        matches, ends = self._of_table
        if not self.masks:
            return bool(matches(name))
        spellings = (name, folded(name))
        # A source can include name levels in some messages and omit them in others. The same applies to patterns.
        if any(matches(end) for spelled in spellings for end in (spelled, *_ends(spelled))):
            return True
        return any(of_end(spelled) for dots, of_end in ends for spelled in spellings if spelled.count(".") == dots)

    def matches_column(self, name: str) -> bool:
        """Return whether the rule applies to a column."""
        return bool(self._of_column(name) or (self.masks and self._of_column(folded(name))))

    def matches_type(self, canonical: str | None) -> bool | None:
        """Return whether the rule applies to columns of a canonical type. An unknown type (None) counts as a match."""
        if self.type == ANY:
            return True
        if canonical is None or canonical == UNKNOWN_TYPE:
            return None
        return bool(self._of_type(canonical))

    @cached_property
    def _of_table(self) -> tuple[Matcher, list[tuple[int, Matcher]]]:
        """Return a matcher for the pattern and for each suffix that follows a dot, together with its number of dots."""
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
    """Return the folded name. It is the same for names that a person or a database might confuse."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    # C stands for invisible characters, M for marks such as accents. Dotless i is the lower case of a Turkish I.
    kept = "".join(char for char in text if unicodedata.category(char)[0] not in "CM")
    return kept.replace("ı", "i").strip()


def _ends(name: str) -> Iterator[str]:
    """Return the name without its first levels."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def _either(pattern: str) -> Matcher:
    """Match a name as written or folded. `?` matches one character in either version."""
    written, loose = matcher(pattern), matcher(folded(pattern))
    return lambda name: written(name) or loose(name)
