"""Handle events that a table rejects: quarantine single events, or park the table with everything that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cdc_core.table_id import TableId
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import Reason, Refused
from spark_sink.events import quarantine
from spark_sink.events.grouping import Intake
from spark_sink.events.parking import Parking
from spark_sink.events.quarantine import Rejected
from spark_sink.model.event import Event
from spark_sink.table_report import Deferred, Done, Parked, TableCounters
from spark_sink.tables.changes import Marker
from spark_sink.tables.protocols import Tables

# The maximum number of commits to one table per batch. The next batch's marker numbers start after this number.
MAX_SEGMENTS = 4096


@dataclass(frozen=True)
class RejectedEvents:
    """Quarantines the events that one table rejects in a batch, or parks the table, and counts the events.

    If the raw records were not sent along with the events, the methods raise RawRecordMissing before they write
    anything.

    Args:
        parking: the parked tables, or None while parked events are being replayed.
        app: the pipeline and the checkpoint, which mark the commits together with the name.
        name: the lakehouse table's name, or the name under which its events are parked.
        table: the events' source table, or None if unknown.
        records: the records from which the events were read.
    """

    tables: Tables
    rules: TableRules
    parking: Parking | None
    app: str
    batch: int
    name: str
    table: TableId | None
    records: pa.Table

    def marker(self, number: int) -> Marker:
        """Return the commit marker for a segment in the batch."""
        return Marker(f"{self.app}/{self.name}", self.batch * MAX_SEGMENTS + number)

    def was_parked_by_this_batch(self) -> bool:
        """Return whether an earlier attempt at this batch parked the table. In that case, the events up to that point
        are in the table, and all later events are parked.
        """
        if self.table is None or self.parking is None or not (self.parking.again or self.name in self.parking.held):
            return False
        marker = self.marker(0)
        done = self.tables.parked(marker.app)
        return done is not None and done >= marker.version

    def defer_if_parked(self, incoming: Intake) -> Deferred | None:
        """Park the events if earlier events for the table are parked. Return None if the table is not parked."""
        cause = self.parking.held.get(self.name) if self.parking is not None and self.table is not None else None
        if cause is None:
            return None
        return Deferred(self._park(0, Reason(cause.reason), cause.detail, incoming.events, incoming.rejected))

    def refuse(self, number: int, refusal: Refused, events: Iterable[Event], rejected: Iterable[Rejected]) -> Parked:
        """Park the table with all its remaining events, including invalid events."""
        return Parked(str(refusal), self._park(number, refusal.reason, str(refusal), events, rejected))

    def reject(self, number: int, rejected: Sequence[Rejected], before: int = 0) -> TableCounters:
        """Append events to the quarantine and count them. Call this method before the commit that omits these events.

        Args:
            before: the number of events that the table has already rejected in this batch.

        Raises:
            Refused: too many of the table's events are invalid.
        """
        limit, count = self.rules.park_rejected, before + len(rejected)
        if self.table is not None and limit is not None and count > limit:
            raise Refused(
                Reason.REJECTED_MANY,
                f"{count} of its events in one batch could not be applied, but tables.park_rejected is {limit}",
            )
        if not rejected:
            return TableCounters()
        ordered = sorted(rejected, key=lambda one: one.event)
        self.tables.quarantine(quarantine.rows(self.records, self.table, ordered), self.marker(number))
        return TableCounters(rejected=dict(Counter(one.reason.value for one in rejected)))

    def reject_all(self, incoming: Intake) -> tuple[Done | Parked, TableCounters]:
        """Reject the invalid events of a batch that has no valid events."""
        try:
            return Done(), self.reject(0, incoming.rejected)
        except Refused as refusal:
            return self.refuse(0, refusal, incoming.events, incoming.rejected), TableCounters()

    def _park(
        self, number: int, reason: Reason, detail: str, events: Iterable[Event], rejected: Iterable[Rejected]
    ) -> int:
        """Append the events to the parked events, and return how many were appended. Replayed events are already
        parked.
        """
        if self.parking is None:
            return 0
        places = sorted({event.index for event in events} | {one.event for one in rejected})
        if places:
            held = [Rejected(place, reason, detail) for place in places]
            rows = self.parking.rows(self.records, self.table, self.name, self.batch, held)
            self.tables.park(rows, self.marker(number))
        return len(places)
