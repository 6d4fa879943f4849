"""Compare a mirror with its source by the digests of rows. First compare key ranges, and then the keys in ranges that
differ.

Changes may be in flight during the comparison. A row counts as different only if two comparisons find the same
difference, and the row did not change in the table. Between the two, the sink applies the events that the first
comparison may have missed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import ceil, log
from typing import NamedTuple, Protocol

from spark_sink.errors import FatalError
from spark_sink.model.event import Key
from spark_sink.model.row import RowMark
from spark_sink.operations.row_digests import (
    ComparedColumns,
    Digest,
    Digests,
    KeyTexts,
    by_range,
    key_hash,
    row_digests,
)
from spark_sink.operations.verify import Verified, chunks
from spark_sink.schema.business_view import versions
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables.protocols import MirrorTable

# The number of rows in a range, and the maximum number of digits that identify a range.
_RANGE, _DIGITS = 500, 5

# The maximum number of ranges that a statement for a source names.
_MOST = 1_000


class SourceColumns(Protocol):
    """The columns at a source."""

    def names(self) -> set[str]:
        """Return the names of the columns."""

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        """Return whether the source can compute digests for values of the column's type."""


class ComparedSource(SourceColumns, Protocol):
    """The rows at a source. Each call reads the newest rows."""

    def ranges(self, columns: ComparedColumns, digits: int) -> dict[str, Digest]:
        """Return the digest of each key range, whose key hashes begin with the same digits."""

    def rows(self, columns: ComparedColumns, ranges: Collection[str]) -> Digests:
        """Return the digest of each key in these ranges."""


def compared_columns(
    shape: TableShape, source: SourceColumns, skipped: Collection[str]
) -> tuple[ComparedColumns, dict[str, str]]:
    """Return the columns to compare, and for every other column, the reason why it is not compared.

    Args:
        skipped: the names of source columns that must not be compared.

    Raises:
        FatalError: a key column cannot be compared.
    """
    names = source.names()
    by_name = versions([one for one in shape.columns if one.name not in shape.foreign])
    left_out = dict.fromkeys(sorted(names - by_name.keys()), "only in the source")
    for name in sorted(set(skipped) - by_name.keys() - names):
        raise FatalError(f"--skip: neither the table nor the source has a column {name}")
    key: dict[str, TableColumn] = {}
    values: list[TableColumn] = []
    for name, group in by_name.items():
        in_key = group[0].name in shape.key
        why = _why_not(name, group, names, source, skipped, in_key=in_key)
        if why and in_key:
            raise FatalError(f"the key column {name} cannot be compared: {why}")
        if why:
            left_out[name] = why
        elif in_key:
            key[group[0].name] = group[0]
        else:
            values.append(group[0])
    return ComparedColumns(tuple(key[name] for name in shape.key), tuple(values)), left_out


def _why_not(
    name: str,
    group: Iterable[TableColumn],
    names: set[str],
    source: SourceColumns,
    skipped: Collection[str],
    *,
    in_key: bool,
) -> str | None:
    column, *more = group
    if name in skipped:
        return "skipped"
    if name not in names:
        return "not in the source"
    if more:
        return "several versions in the table"
    if not source.can_compare(column, in_key=in_key):
        return f"the source cannot compute digests of {column.type}"
    return None


def range_digits(rows: int) -> int:
    """Return the number of digits that identify a key range in a table with this many rows."""
    return min(_DIGITS, max(1, ceil(log(max(1, rows / _RANGE), 16))))


class TableDigests(NamedTuple):
    """The digests of a table's rows, and the keys with their types."""

    table: MirrorTable
    rows: Digests
    keys: Mapping[KeyTexts, Key]

    def marks(self, keys: Iterable[KeyTexts]) -> dict[KeyTexts, RowMark]:
        """Return the marks of those keys that exist in the table."""
        wanted = {texts: self.keys[texts] for texts in keys if texts in self.keys}
        found = self.table.marks(set(wanted.values()))
        return {texts: found[key] for texts, key in wanted.items()}


def table_digests(table: MirrorTable, columns: ComparedColumns) -> TableDigests:
    """Return the digest of each row of a table."""
    every = (*columns.key, *columns.values)
    names = {one: one.name for one in every}
    counts, digests, keys = table.live_keys(), Digests(), dict[KeyTexts, Key]()
    for chunk in chunks(sorted(counts, key=repr)):
        stored = table.rows(set(chunk))
        values = {one.name: [stored[key][one.name] for key in chunk] for one in every}
        for key, (texts, digest) in zip(chunk, row_digests(columns, names, values), strict=True):
            digests[texts] = Digest(counts[key], counts[key] * digest)
            keys[texts] = key
    return TableDigests(table, digests, keys)


class SourceComparison:
    """A comparison in two passes. All keys are text, because a source provides no other type for them.

    Args:
        open_table: opens the newest version of the table.
        catch_up: waits until the sink has applied all events that it could not have applied when this was called.
            Returns whether it has.
    """

    def __init__(
        self,
        open_table: Callable[[], MirrorTable],
        source: ComparedSource,
        columns: ComparedColumns,
        catch_up: Callable[[], bool],
    ) -> None:
        self._open_table = open_table
        self._source = source
        self._columns = columns
        self._catch_up = catch_up

    def run(self) -> Verified:
        """Compare all rows. Rows that differ are compared again once the sink has caught up."""
        ours = table_digests(self._open_table(), self._columns)
        result = Verified(compared=len(ours.rows))
        digits = range_digits(len(ours.rows))
        theirs = self._source.ranges(self._columns, digits)
        duplicated = {key_hash(key)[:digits] for key, one in ours.rows.items() if one.rows > 1}
        first = self._differing(ours, _unequal(by_range(ours.rows, digits), theirs) | duplicated)
        if not first:
            return result
        marks = ours.marks(first)
        is_settled = self._catch_up()
        ours = table_digests(self._open_table(), self._columns)
        second = self._differing(ours, {key_hash(key)[:digits] for key in first})
        again = first.keys() & second.keys()
        marks_again = ours.marks(again)
        confirmed = {
            key for key in again if is_settled and first[key] == second[key] and marks.get(key) == marks_again.get(key)
        }
        result.inconclusive = len(again - confirmed)
        for key in sorted(confirmed, key=repr):
            _sort_out(key, second[key], marks_again.get(key), result)
        return result

    def _differing(
        self, ours: TableDigests, ranges: Collection[str]
    ) -> dict[KeyTexts, tuple[Digest | None, Digest | None]]:
        """Return the keys in these ranges that differ, with the digests in the table and at the source. A key that
        occurs twice in the table differs even if it also occurs twice at the source.
        """
        if not ranges:
            return {}
        while len(ranges) > _MOST:
            ranges = {begin[:-1] for begin in ranges}
        digits = len(next(iter(ranges)))
        theirs = self._source.rows(self._columns, ranges)
        mine = {key: one for key, one in ours.rows.items() if key_hash(key)[:digits] in ranges}
        found = {key: (mine.get(key), theirs.get(key)) for key in mine.keys() | theirs.keys()}
        return {
            key: (one, other)
            for key, (one, other) in found.items()
            if one != other or (one is not None and one.rows > 1)
        }


def _sort_out(
    key: KeyTexts, digests: tuple[Digest | None, Digest | None], marks: RowMark | None, result: Verified
) -> None:
    mine, theirs = digests
    if mine is None or marks is None:
        result.missing.append(key)
    elif mine.rows > 1:
        result.duplicated.append(key)
    elif theirs is None:
        result.extra.append(key)
    elif marks.incomplete:
        result.declared += 1
    else:
        result.different.append(key)


def _unequal(ours: Mapping[str, Digest], theirs: Mapping[str, Digest]) -> set[str]:
    return {begin for begin in ours.keys() | theirs.keys() if ours.get(begin) != theirs.get(begin)}
