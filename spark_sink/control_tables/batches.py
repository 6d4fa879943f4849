"""The driver's own tables. They record the parked tables and the result of every batch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.control_tables.cut import ManifestRow
from spark_sink.control_tables.erased import ErasedTable, Topic
from spark_sink.control_tables.maintenance import MaintenanceTable
from spark_sink.control_tables.requests import RequestTable
from spark_sink.control_tables.verified import VerifiedTable
from spark_sink.errors import FatalError, Reason
from spark_sink.events import parking
from spark_sink.events.erased_keys import ErasedKeys
from spark_sink.events.offset_span import merge_spans
from spark_sink.events.parking import Cause, Parking
from spark_sink.schema.table_naming import RESERVED
from spark_sink.table_report import Parked, TableReport
from spark_sink.tables.changes import LastSeen, Marker
from spark_sink.tables.delta.control_tables import ControlTable, ParkedTables

BATCHES = f"{RESERVED}.batches"

ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string()),
        pa.field("checkpoint", pa.string()),
        pa.field("batch", pa.int64()),
        pa.field("ended_at", pa.timestamp("us", "UTC")),
        pa.field("topic", pa.string()),
        pa.field("from_offsets", pa.map_(pa.int32(), pa.int64())),
        pa.field("to_offsets", pa.map_(pa.int32(), pa.int64())),
        pa.field("positions", pa.map_(pa.string(), pa.string())),
        pa.field("versions", pa.map_(pa.string(), pa.int64())),
    ]
)


class BatchTable(ControlTable):
    """The table `_cdc.batches`, with one row per batch.

    The row is written after the batch's commits and before the batch is acknowledged. If a resume or a sweep changes
    tables between batches, the change gets a row without offsets.
    """

    def __init__(self, warehouse: str, pipeline: str, checkpoint: str, topic: str) -> None:
        super().__init__(warehouse, BATCHES, pipeline, ARROW)
        self._checkpoint = checkpoint
        self._topic = topic
        self._ended_at: int | None = None
        self._last_seen: dict[str, LastSeen] | None = None

    def write(self, batch: int | None, reports: Sequence[TableReport], parked: int = 0) -> None:
        """Write a batch's row. Tables and partitions that did not change are left out.

        Args:
            reports: one or more for each table; the last one counts.
            parked: the version of `_cdc.parked` after the batch, or 0 if no table was ever parked.
        """
        versions = {report.table: report.version for report in reports if report.version is not None}
        if parked:
            versions[parking.NAME] = parked
        extent = merge_spans(report.extent for report in reports) if batch is not None else merge_spans(())
        row: dict[str, Any] = {
            "checkpoint": self._checkpoint,
            "batch": batch,
            "ended_at": self._now(),
            "topic": self._topic,
            "from_offsets": sorted(extent.begin.items()),
            "to_offsets": sorted(extent.end.items()),
            "positions": sorted(extent.positions.items()),
            "versions": sorted(versions.items()),
        }
        marker = None if batch is None else Marker(f"{self.pipeline}/{self._checkpoint}/{BATCHES}", batch)
        self.append([row], marker)
        if self._last_seen is not None:
            self._last_seen |= _seen(versions, row["ended_at"] if batch is not None else 0)

    def last_seen(self) -> Mapping[str, LastSeen]:
        """Return each table's newest state. Only this process writes rows, so one read is enough."""
        if self._last_seen is None:
            self._last_seen = {}
            rows = self.read(["batch", "ended_at", "versions"]).sort_by("ended_at")
            times = rows.column("ended_at").cast(pa.int64()).to_pylist()
            batches, versions = rows.column("batch").to_pylist(), rows.column("versions").to_pylist()
            for batch, at, named in zip(batches, times, versions, strict=True):
                # A row without a batch can summarize many rows. Its time comes from the last of these rows.
                self._last_seen |= _seen(dict(named), at if batch is not None else 0)
        return self._last_seen

    def ended(self) -> int | None:
        """Return the number of the newest finished batch under this checkpoint, or None if no batch has finished."""
        rows = self.read(["batch"], checkpoint=self._checkpoint)
        newest: int | None = pc.max(rows.column("batch")).as_py()
        return newest

    def topic_id(self) -> str | None:
        """Return the topic id that the sink recorded when it read the topic, or None if no sink has recorded one."""
        return self.kept_property(self._topic_property)

    def keep_topic_id(self, id: str) -> None:
        self.keep_property(self._topic_property, id)

    @property
    def _topic_property(self) -> str:
        return f"cdc.topic_id.{self.pipeline}/{self._topic}"

    def _now(self) -> int:
        """Return a time that is later than the times of all existing rows, whatever the clock shows. Rows are ordered
        only by time.
        """
        if self._ended_at is None:
            ended = self.read(["ended_at"]).column("ended_at").cast(pa.int64())
            self._ended_at = pc.max(ended).as_py() or 0
        self._ended_at = max(time.time_ns() // 1000, self._ended_at + 1)
        return self._ended_at

    def reached(self) -> Mapping[int, int]:
        """Return, for each partition, the offset after this pipeline's last finished batch under any checkpoint."""
        reached: dict[int, int] = {}
        for offsets in self.read(["to_offsets"], topic=self._topic).column("to_offsets").to_pylist():
            for partition, offset in offsets:
                reached[partition] = max(offset, reached.get(partition, 0))
        return reached

    def topic(self) -> Topic:
        """Return the topic that the pipeline reads."""
        return Topic(self._topic, self.topic_id())

    def span(self, batch: int) -> Mapping[int, tuple[int, int]]:
        """Return the offset of a batch's first record and the offset after its last record, for each partition. The
        batch belongs to the newest checkpoint.

        Raises:
            FatalError: the batch does not exist.
        """
        columns = ["checkpoint", "batch", "ended_at", "from_offsets", "to_offsets"]
        rows = self.read(columns, topic=self._topic).sort_by("ended_at").to_pylist()
        rows = [row for row in rows if row["batch"] is not None]
        known = {row["batch"]: row for row in rows if row["checkpoint"] == rows[-1]["checkpoint"]}
        if batch not in known:
            exist = f"; existing batches: {min(known)} to {max(known)}" if known else ""
            raise FatalError(f"batch {batch} of topic {self._topic} does not exist{exist}")
        ends = dict(known[batch]["to_offsets"])
        return {partition: (first, ends[partition]) for partition, first in known[batch]["from_offsets"]}

    def fold_before(self, moment: float) -> int:
        """Merge old rows into one row per topic, and return the number of removed rows.

        A row is old if its batch ended before a moment (seconds since 1970) and before the newest batch. The merged
        batches can no longer be used for a cut. Later batches can, and their cuts do not change.
        """
        rows = sorted(self.read(self._schema.names).to_pylist(), key=lambda row: row["ended_at"])
        newest = next((row for row in reversed(rows) if row["batch"] is not None and row["topic"] == self._topic), None)
        if newest is None:
            return 0
        end = min(moment, newest["ended_at"].timestamp())
        old = [row for row in rows if row["ended_at"].timestamp() < end]
        folded = _folded(old)
        if len(old) > len(folded):
            self.replace_before("ended_at", end, folded)
        return len(old) - len(folded)

    def tables(self) -> set[str]:
        """Return the tables written in any of this pipeline's batches."""
        names: set[str] = set()
        for chunk in self.read(["versions"]).column("versions").chunks:
            names.update(pc.unique(chunk.keys).to_pylist())
        return names - {parking.NAME}

    def rows(self) -> list[ManifestRow]:
        """Return the rows from which a cut is computed, in any order."""
        found = self.read(["checkpoint", "batch", "ended_at", "topic", "to_offsets", "versions"]).to_pylist()
        maps = ("to_offsets", "versions")
        return [ManifestRow(**{**row, **{name: dict(row[name]) for name in maps}}) for row in found]


def _seen(versions: Mapping[str, int], at: int) -> dict[str, LastSeen]:
    return {name: LastSeen(version, at) for name, version in versions.items() if name != parking.NAME}


def _folded(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one row per topic. Together, they replace these ordered rows. The last row has all versions, because a
    table's versions increase over time, whatever the topic.
    """
    reached: dict[str, dict[int, int]] = {}
    positions: dict[str, dict[str, str]] = {}
    last: dict[str, Mapping[str, Any]] = {}
    versions: dict[str, int] = {}
    for row in rows:
        topic = row["topic"]
        # Keep the topics in the order of their last rows.
        last.pop(topic, None)
        last[topic] = row
        offsets, places = reached.setdefault(topic, {}), positions.setdefault(topic, {})
        offsets |= {partition: max(offset, offsets.get(partition, 0)) for partition, offset in row["to_offsets"]}
        places |= {scope: max(position, places.get(scope, "")) for scope, position in row["positions"]}
        versions |= dict(row["versions"])
    return [
        {
            **row,
            "batch": None,
            "from_offsets": [],
            "to_offsets": sorted(reached[topic].items()),
            "positions": sorted(positions[topic].items()),
            "versions": sorted(versions.items()) if row is rows[-1] else [],
        }
        for topic, row in last.items()
    ]


class ControlTables:
    """The sink's own tables for one pipeline. Call `begin` and `end` around a batch, and `changed` after a change
    between batches.
    """

    def __init__(self, warehouse: str, pipeline: str, checkpoint: str, topic: str) -> None:
        self.parked = ParkedTables(warehouse, pipeline)
        self.requests = RequestTable(warehouse, pipeline)
        self.batches = BatchTable(warehouse, pipeline, checkpoint, topic)
        self.maintenance = MaintenanceTable(warehouse, pipeline)
        self.erased = ErasedTable(warehouse, pipeline)
        self.verified = VerifiedTable(warehouse, pipeline)
        self._held: dict[str, Cause] | None = None
        self._ended: int | None = None
        self._turn = 0

    def erased_keys(self) -> Mapping[str, ErasedKeys]:
        """Return the erased keys of each table."""
        return self.erased.keys(self.batches.topic)

    def apps(self, checkpoint: str) -> tuple[str, ...]:
        """Return the apps of all commits that apply events. These are the batches of a checkpoint, replays and
        reloads.
        """
        return (f"{self.parked.pipeline}/{checkpoint}", self.parked.app, self.parked.reload_app)

    def create(self) -> None:
        """Create the missing tables."""
        own = (self.parked, self.requests, self.batches, self.maintenance, self.erased, self.verified)
        for control_table in own:
            control_table.create()

    def held(self) -> dict[str, Cause]:
        """Return the parked tables. Only this process parks tables. It therefore reads the stored list again only if
        its own copy may be outdated.
        """
        if self._held is None:
            self._held = self.parked.held()
        return self._held

    def changed(self) -> None:
        """Record that a table was parked or resumed."""
        self._held = None

    def park(self, name: str, reason: Reason, detail: str, marker: Marker) -> bool:
        """Park a table without an event, unless it is already parked. Return whether this call parked the table."""
        done = self.parked.parked_by(marker)
        if not done:
            self.parked.park(name, reason, detail, marker)
            self.changed()
        return not done

    def begin(self, batch: int) -> Parking:
        # After a start or a failure, this may be a repeated batch.
        again = self._ended is None or batch != self._ended + 1
        if again:
            self.changed()
        self._ended = None
        self._turn = turn = self.parked.version()  # 0: nothing was ever parked
        return Parking(self.parked.pipeline, turn, time.time_ns() // 1000, dict(self.held()), again and turn > 0)

    def end(self, batch: int, reports: Sequence[TableReport]) -> None:
        parks = any(report.parked or report.wide for report in reports)
        self.batches.write(batch, reports, self.parked.version() if parks else self._turn)
        for report in reports:
            if isinstance(report.outcome, Parked):
                self.changed()
            elif report.parked and self._held is not None:
                cause = self._held[report.table]
                self._held[report.table] = cause._replace(events=cause.events + report.parked)
        self._ended = batch
