"""Read the checksums that a job at the source has computed (`checksum_job`) from the changes of their table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from cdc_core.reader import Change
from spark_sink.errors import FatalError
from spark_sink.operations.row_digests import ComparedColumns
from spark_sink.schema.business_view import versions
from spark_sink.schema.evolution import TableColumn, TableShape

TABLE = "cdc_checksums"
"""The table with the checksums, in the same database or schema as the tables that they describe."""

TOTAL = "all"
"""The key range of the row with the sum of all ranges. The job inserts this row last."""

WEIGHT_DIGITS = 8
"""The number of hexadecimal digits that a row's weight takes from the hash of its key."""

LEAST_DIGITS = 2
"""The minimum number of digits that identify a range. With too few ranges, a tool that distributes rows by key might
send none of them to some partitions.
"""


class Checksum(NamedTuple):
    """The checksum of a number of rows.

    Args:
        total: the sum of the rows' digests.
        weighted: the sum of the rows' digests, each multiplied by the row's weight.
    """

    rows: int = 0
    total: int = 0
    weighted: int = 0

    def plus(self, other: Checksum) -> Checksum:
        return Checksum(*(one + another for one, another in zip(self, other, strict=True)))

    def minus(self, other: Checksum) -> Checksum:
        return Checksum(*(one - another for one, another in zip(self, other, strict=True)))


class ChecksumColumns(msgspec.Struct, frozen=True):
    """The columns covered by the job's checksums: names at the source, and types in the table."""

    key: list[tuple[str, str]]
    values: list[tuple[str, str]]

    @classmethod
    def of(cls, columns: ComparedColumns) -> ChecksumColumns:
        return cls(*([(one.sent_as, one.type) for one in group] for group in columns))

    def in_table(self, shape: TableShape) -> ComparedColumns:
        """Return the table's columns.

        Raises:
            FatalError: the table has other columns.
        """
        by_name = versions([one for one in shape.columns if one.name not in shape.foreign])
        key, values = (
            tuple(self._in_table(name, type, by_name.get(name, ())) for name, type in group)
            for group in (self.key, self.values)
        )
        if tuple(one.name for one in key) != shape.key:
            raise FatalError(f"the checksums identify rows by other columns than the table ({', '.join(shape.key)})")
        return ComparedColumns(key, values)

    def _in_table(self, name: str, type: str, found: Sequence[TableColumn]) -> TableColumn:
        types = [one.type for one in found]
        if types != [type]:
            raise FatalError(
                f"the checksums have the column {name} with type {type}, but in the table it has "
                f"{' and '.join(types) or 'no type'}. Replace the job by the output of `spark-sink checksums`"
            )
        return found[0]


class ChecksumRun(NamedTuple):
    """The result of one run of the job.

    Args:
        at: when the source computed the checksums.
        columns: None until the row with the total has arrived.
        ranges: the checksum of each key range that contains rows, by the first digits of the keys' hashes.
        places: the run's position in each scope that one of its rows came from.
    """

    at: datetime
    columns: ChecksumColumns | None
    total: Checksum
    ranges: Mapping[str, Checksum]
    places: Mapping[str, str]

    @property
    def is_complete(self) -> bool:
        return self.columns is not None and summed(self.ranges.values()) == self.total


class _Row(msgspec.Struct):
    """A row of the table with the checksums. Numbers arrive as text from some replication tools."""

    run: str
    table_name: str
    key_range: str
    computed_at: datetime
    row_count: int
    digest: int
    weighted: int
    sent_columns: str | None = None


def newest_run(changes: Iterable[Change], table: str) -> ChecksumRun | None:
    """Return the newest run for a table, or None if no run exists.

    Args:
        changes: the changes of the table with the checksums. The first position of a row counts, because a replication
            tool may repeat rows later.

    Raises:
        FatalError: the job did not create the table with the checksums, and a scope has a row with other columns that
            is newer than all valid rows.
    """
    runs: dict[str, dict[str, _Row]] = defaultdict(dict)
    places: dict[str, dict[str, str]] = defaultdict(dict)
    sent: dict[str, ChecksumColumns] = {}
    invalid: dict[str, str] = {}
    for change in changes:
        # A snapshot row arrives later than the change that it contains.
        if change.op != "c" or change.after is None or change.after.get("table_name") != table:
            continue
        try:
            row = msgspec.convert(change.after, _Row, strict=False)
            columns = None if row.sent_columns is None else msgspec.json.decode(row.sent_columns, type=ChecksumColumns)
        except msgspec.DecodeError:
            invalid[change.event.pos_scope] = change.event.id
            continue
        invalid.pop(change.event.pos_scope, None)
        if columns is not None:
            sent.setdefault(row.run, columns)
        runs[row.run].setdefault(row.key_range, row)
        scope, pos = change.event.pos_scope, change.event.pos
        places[row.run][scope] = min(pos, places[row.run].get(scope, pos))
    for id in invalid.values():
        raise FatalError(
            f"{id}: a row of {TABLE} has other columns than the table that `spark-sink checksums --create` creates"
        )
    found = [_run(rows, sent.get(run), places[run]) for run, rows in runs.items()]
    return max(found, key=lambda one: one.at, default=None)


def _run(rows: Mapping[str, _Row], columns: ChecksumColumns | None, places: Mapping[str, str]) -> ChecksumRun:
    at = max(row.computed_at for row in rows.values())
    sums = {name: Checksum(row.row_count, row.digest, row.weighted) for name, row in rows.items()}
    return ChecksumRun(at.replace(tzinfo=UTC), columns, sums.pop(TOTAL, Checksum()), sums, places)


def summed(checksums: Iterable[Checksum]) -> Checksum:
    """Return the checksum of all rows."""
    total = Checksum()
    for one in checksums:
        total = total.plus(one)
    return total
