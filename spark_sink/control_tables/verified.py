"""Record the results of `spark-sink verify`. They contain counts, but no values from rows."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.delta.control_tables import ControlTable

NAME = f"{RESERVED}.verified"

ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string()),
        pa.field("table", pa.string()),
        pa.field("against", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("batch", pa.int64()),
        pa.field("through", pa.timestamp("us", "UTC")),
        pa.field("compared", pa.int64()),
        pa.field("differing", pa.int64()),
        pa.field("left_out", pa.int64()),
    ]
)


_REPEATED = frozenset({"topic", "database", "checksums"})


class Verification(NamedTuple):
    """The result of a verification.

    Args:
        against: what the table was compared with.
        at: when the verification ended.
        batch: the batch after which the table was compared.
        through: when that batch ended if the table is verified up to it, or None if rows differ or were skipped.
        differing: the number of rows that differ, or None if the comparison was inconclusive.
        left_out: the number of rows that could not be compared.
    """

    table: str
    against: str
    at: datetime
    batch: int
    through: datetime | None
    compared: int
    differing: int | None
    left_out: int


class Standing(NamedTuple):
    """The last verification of a table against one source. It also has the last successful one and the last conclusive
    one, if they exist.
    """

    last: Verification
    verified: Verification | None
    conclusive: Verification | None


class VerifiedTable(ControlTable):
    """The table `_cdc.verified`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, NAME, pipeline, ARROW)

    def write(self, found: Verification) -> None:
        self.create()  # a sink of an earlier release has not created it
        self.append([found._asdict()])

    def standings(self) -> list[Standing]:
        """Return the standing of each table compared with the topic, each database and checksums. The result is ordered
        by name. Comparisons with files and other tables are not repeated, so their results would stay the same forever.
        """
        found = [one for one in self._all() if one.against.partition(":")[0] in _REPEATED]
        last = {(one.table, one.against): one for one in found}
        verified = {(one.table, one.against): one for one in found if one.through is not None}
        conclusive = {(one.table, one.against): one for one in found if one.differing is not None}
        return [Standing(one, verified.get(of), conclusive.get(of)) for of, one in sorted(last.items())]

    def forget(self, table: str, against: str | None) -> int:
        """Delete the results of a table, against one source or all sources, and return how many were deleted."""
        if not self.exists():
            return 0
        return self.remove_equal(table=table, **({} if against is None else {"against": against}))

    def forget_before(self, moment: float) -> int:
        """Delete results from before a moment (seconds since 1970), and return how many were deleted. Keep those that
        the standings need.
        """
        needed = {one for standing in self.standings() for one in standing}
        old = [one for one in self._all() if one.at.timestamp() < moment]
        kept = [one for one in old if one in needed]
        if len(kept) < len(old):
            self.replace_before("at", moment, [one._asdict() for one in kept])
        return len(old) - len(kept)

    def _all(self) -> list[Verification]:
        rows = self.read(Verification._fields).to_pylist()
        return sorted((Verification(**row) for row in rows), key=lambda one: one.at)
