"""What a table does not take: events that go to quarantine one by one, and tables that are parked with their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from spark_sink.config.table_rules import TableRules
from spark_sink.errors import Reason, Refused
from spark_sink.events import quarantine
from spark_sink.events.grouping import Intake
from spark_sink.events.parking import Parking
from spark_sink.events.quarantine import Rejected
from spark_sink.model.row import Event
from spark_sink.schema.table_naming import TableId
from spark_sink.table_report import TableReport
from spark_sink.tables.protocols import Marker, Tables

# Commits that a table may make in one batch: versions of the next batch begin there.
MAX_SEGMENTS = 4096


@dataclass(frozen=True)
class RejectedEvents:
    """Puts aside what one table does not take of a batch, and tells the report.

    Whatever has to be put aside raises NotCarried where its records did not travel; nothing is done then.

    Args:
        parking: the parked tables; None: these events are parked already, and replayed.
        app: pipeline and checkpoint; with the table's name it marks the commits.
        table: whose events they are; None: nobody can tell.
        records: of which the events were read.
    """

    tables: Tables
    rules: TableRules
    parking: Parking | None
    app: str
    batch: int
    report: TableReport
    table: TableId | None
    records: pa.Table

    def marker(self, number: int) -> Marker:
        """Of the commit for a segment of the batch."""
        return Marker(f"{self.app}/{self.report.table}", self.batch * MAX_SEGMENTS + number)

    def defer_if_parked(self, came: Intake) -> bool:
        """Whether the table takes none of these events; they wait with those that came before."""
        if self.table is None or self.parking is None:
            return False
        cause = self.parking.held.get(self.report.table)
        if cause is None and not self.parking.again:
            return False
        marker = self.marker(0)
        done = self.tables.parked(marker.app)
        if done is not None and done >= marker.version:
            # This batch was begun before: what it brought until the table was parked is in the table, the rest waits.
            self.report.skipped += 1
            self._tell_version()
            return True
        if cause is not None:
            self._park(0, Reason(cause.reason), cause.detail, came.events, came.rejected)
        return cause is not None

    def _tell_version(self) -> None:
        """For the manifest, which would not know of what the batch wrote before."""
        with suppress(Refused):  # as it cannot be opened, it had no commit
            table = self.tables.open(self.report.table)
            self.report.version = table.version if table is not None else None

    def refuse(self, number: int, refusal: Refused, events: Iterable[Event], rejected: Iterable[Rejected]) -> None:
        """The table cannot go on: it is parked with its events from here on, the broken ones among them."""
        self._park(number, refusal.reason, str(refusal), events, rejected)
        self.report.refused = str(refusal)

    def reject(self, number: int, rejected: Sequence[Rejected]) -> None:
        """To quarantine, before the commit that leaves the events out.

        Raises:
            Refused: too many of the table's events are broken.
        """
        limit, count = self.rules.park_rejected, sum(self.report.rejected.values()) + len(rejected)
        if self.table is not None and limit is not None and count > limit:
            raise Refused(
                Reason.REJECTED_MANY,
                f"{count} of its events in one batch cannot be applied, tables.park_rejected is {limit}",
            )
        if rejected:
            ordered = sorted(rejected, key=lambda one: one.event)
            self.tables.quarantine(quarantine.rows(self.records, self.table, ordered), self.marker(number))
            reasons = Counter(one.reason.value for one in rejected)
            self.report.rejected = dict(Counter(self.report.rejected) + reasons)

    def reject_all(self, came: Intake) -> None:
        """Where there is nothing to fold."""
        try:
            self.reject(0, came.rejected)
        except Refused as refusal:
            self.refuse(0, refusal, came.events, came.rejected)

    def _park(
        self, number: int, reason: Reason, detail: str, events: Iterable[Event], rejected: Iterable[Rejected]
    ) -> None:
        if self.parking is None:
            return
        places = sorted({event.index for event in events} | {one.event for one in rejected})
        if places:
            held = [Rejected(place, reason, detail) for place in places]
            rows = self.parking.rows(self.records, self.table, self.report.table, self.batch, held)
            self.tables.park(rows, self.marker(number))
            self.report.parked = len(places)
