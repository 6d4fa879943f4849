"""The sink's own Delta tables, for the driver and the command line: parked events, commands, batches.

The tables are created and written through deltalake, so the command line needs no Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from cdc_core.state_format import FORMAT, check_format
from cdc_core.table_id import TableId
from spark_sink.errors import Reason
from spark_sink.events import parking
from spark_sink.events.parking import Cause
from spark_sink.events.quarantine import event_in
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.maintenance import maintaining
from spark_sink.tables.delta.open_table import REMEMBERED, commit, committing, create, keep_properties, literal
from spark_sink.tables.locations import location
from spark_sink.tables.table_properties import FORMAT_PROPERTY, RELEASE_PROPERTY, format_properties

# The operation of an event from a load.
_LOADED = "r"

_RELOAD_ENDED = {
    "reason": Reason.RELOAD_ENDED.value,
    "detail": "its reload ended or was canceled, but events that waited for it have not been applied",
}

# A reader that opens a table reads all commits since the last checkpoint in the table's log, and every batch opens
# these tables several times.
CHECKPOINT_EVERY = "20"


class ControlTable:
    """One of the sink's own tables. Every row contains its pipeline's name."""

    def __init__(self, warehouse: str, name: str, pipeline: str, schema: pa.Schema) -> None:
        self.name = name
        self.path = location(warehouse, name)
        self._schema = schema
        self.pipeline = pipeline

    def create(self) -> None:
        """Create the table, unless it already exists."""
        counted = [field.name for field in self._schema if field.type in (pa.string(), pa.int32(), pa.int64())]
        useful = ",".join(name for name in counted if name != "detail")
        properties = {
            "delta.dataSkippingStatsColumns": useful,
            "delta.checkpointInterval": CHECKPOINT_EVERY,
            **REMEMBERED,
            **format_properties(),
        }
        create(self.path, self._schema, properties)
        self._stamp()

    def _stamp(self) -> None:
        """Set the format of a table from an earlier release, so that the earlier release no longer starts."""
        table = self._open()
        if table.metadata().configuration.get(FORMAT_PROPERTY) != str(FORMAT):
            keep_properties(table, format_properties())

    def _open(self, version: int | None = None) -> DeltaTable:
        return _open(self.path, self.name, version)

    def exists(self) -> bool:
        return DeltaTable.is_deltatable(self.path)

    def version(self) -> int:
        return self._open().version()

    def kept_property(self, name: str) -> str | None:
        """Return a table property, or None if the table or the property does not exist."""
        if not self.exists():
            return None
        return self._open().metadata().configuration.get(name)

    def keep_property(self, name: str, value: str) -> None:
        keep_properties(self._open(), {name: value})

    def append(self, rows: Sequence[Mapping[str, Any]], marker: Marker | None = None) -> None:
        """Append rows for this pipeline. With a marker, do nothing if the rows were already appended."""
        table = self._open()
        done = table.transaction_version(marker.app) if marker is not None else None
        if marker is not None and done is not None and done >= marker.version:
            return
        stated = [{"pipeline": self.pipeline, **row} for row in rows]
        properties = commit(marker) if marker is not None else None
        added = pa.Table.from_pylist(stated, self._schema)
        with committing(table, *([] if marker is None else [marker])):
            write_deltalake(table, added, mode="append", commit_properties=properties)

    def remove_before(self, column: str, moment: float) -> int:
        """Remove this pipeline's rows from before a moment (seconds since 1970), and return the number of removed rows.

        Raises:
            MaintenanceError: another writer committed first, or the storage is unavailable.
        """
        with maintaining(self.name):
            done = self._open().delete(f"{self._mine} AND {_before(column, moment)}")
        return int(done["num_deleted_rows"])

    def replace_before(self, column: str, moment: float, rows: Sequence[Mapping[str, Any]]) -> None:
        """In one commit, replace all of this pipeline's rows from before a moment with other rows from before that
        moment.

        Raises:
            MaintenanceError: another writer committed first, or the storage is unavailable.
        """
        stated = pa.Table.from_pylist([{"pipeline": self.pipeline, **row} for row in rows], self._schema)
        where = f"{self._mine} AND {_before(column, moment)}"
        with maintaining(self.name):
            write_deltalake(self._open(), stated, mode="overwrite", predicate=where)

    def remove_equal(self, **equal: str) -> int:
        """Remove this pipeline's rows whose columns have these values, and return the number of removed rows."""
        wanted = [self._mine, *(f"{column} = {literal(value)}" for column, value in equal.items())]
        return int(self._open().delete(" AND ".join(wanted))["num_deleted_rows"])

    @property
    def _mine(self) -> str:
        return f"pipeline = {literal(self.pipeline)}"

    def read(self, columns: Sequence[str], version: int | None = None, **equal: str) -> pa.Table:
        """Return this pipeline's rows whose columns equal the requested values, now or at a version. If the table does
        not exist, the result is empty.
        """
        wanted = {"pipeline": self.pipeline, **equal}
        schema = pa.schema([self._schema.field(name) for name in columns])
        try:
            files = self._open(version).to_pyarrow_dataset()
        except TableNotFoundError:
            if version is not None:
                raise
            return schema.empty_table()
        condition = ds.scalar(True)
        for name, value in wanted.items():
            condition &= ds.field(name) == value
        # Arrow must not filter inside files that deltalake has rewritten: see DeltaMirror.
        near = ds.FileSystemDataset(
            list(files.get_fragments(filter=condition)), files.schema, files.format, files.filesystem
        )
        found = [
            batch.filter(_all_equal(batch, wanted)).select(list(columns))
            for batch in near.to_batches(columns=[*dict.fromkeys([*columns, *wanted])])
        ]
        return pa.Table.from_batches(found).cast(schema) if found else schema.empty_table()


def _open(path: str, name: str, version: int | None = None) -> DeltaTable:
    """Open one of the sink's own tables.

    Raises:
        FatalError: the table has the format of a later release.
        TableNotFoundError: the table does not exist.
    """
    table = DeltaTable(path, version=version)
    properties = table.metadata().configuration
    check_format(properties.get(FORMAT_PROPERTY), f"the table {name}", properties.get(RELEASE_PROPERTY))
    return table


def _before(column: str, moment: float) -> str:
    """Return a condition in deltalake's SQL: the time is before a moment (seconds since 1970)."""
    text = literal(datetime.fromtimestamp(moment, UTC).isoformat())
    return f"{column} < arrow_cast({text}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def rows_of(warehouse: str, name: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Return the rows of one of the sink's own tables, with these columns. If the table does not exist, the result is
    empty.
    """
    try:
        files = _open(location(warehouse, name), name).to_pyarrow_dataset()
    except TableNotFoundError:
        return
    for batch in files.to_batches(columns=list(columns)):
        yield from batch.to_pylist()


class ParkedTables(ControlTable):
    """The table `_cdc.parked`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, parking.NAME, pipeline, parking.ARROW)

    @property
    def app(self) -> str:
        """Return the app for commits that replay turns. If the table is created again, the app is different, because
        turns then count from the beginning.
        """
        return f"{self.pipeline}/parked:{self._open().metadata().id}"

    @property
    def reload_app(self) -> str:
        """Return the app for commits that end a reload. Their version is the last turn that the reload has applied."""
        return f"{self.pipeline}/reload:{self._open().metadata().id}"

    def held(self, version: int | None = None) -> dict[str, Cause]:
        """Return the parked tables by name, with the cause from the first turn, now or at a version of this table.

        Events that could not be applied after a reload keep waiting when it has ended.
        """
        columns = ["target", "turn", "reason", "detail", "parked_at", "kafka_offset", *TableId._fields]
        rows = self.read(columns, version)
        each = rows.group_by(["target", "turn", "reason", "detail"])
        found = each.aggregate([("parked_at", "min"), ("parked_at", "count"), ("kafka_offset", "count")])
        counted = found.sort_by("turn").to_pylist()
        events: dict[str, int] = {}
        for row in counted:
            events[row["target"]] = events.get(row["target"], 0) + row["kafka_offset_count"]
        begins = (row for row in counted if row["kafka_offset_count"] < row["parked_at_count"])
        reloading = {row["target"] for row in begins if row["reason"] == Reason.RELOAD}
        first = {row["target"]: row for row in reversed(counted)}
        for name, row in first.items():
            if row["reason"] == Reason.RELOAD and name not in reloading:
                row |= _RELOAD_ENDED
        sources = self._sources(rows)
        return {
            name: Cause(
                row["reason"],
                row["detail"],
                int(row["parked_at_min"].timestamp() * 1e6),
                events[name],
                sources.get(name, ()),
            )
            for name, row in first.items()
        }

    def _sources(self, rows: pa.Table) -> dict[str, tuple[TableId, ...]]:
        found: dict[str, tuple[TableId, ...]] = {}
        known = rows.filter(pc.is_valid(rows.column("table")))
        for row in known.group_by(["target", *TableId._fields]).aggregate([]).to_pylist():
            found[row["target"]] = (*found.get(row["target"], ()), TableId(*(row[name] for name in TableId._fields)))
        return found

    def first_waiting(self, version: int | None = None) -> dict[str, dict[int, int]]:
        """Return the first parked event's offset by table and partition, now or at a version of this table."""
        rows = self.read(["target", "kafka_partition", "kafka_offset"], version)
        first: dict[str, dict[int, int]] = {}
        for row in rows.group_by(["target", "kafka_partition"]).aggregate([("kafka_offset", "min")]).to_pylist():
            if row["kafka_offset_min"] is not None:
                first.setdefault(row["target"], {})[row["kafka_partition"]] = row["kafka_offset_min"]
        return first

    def turns(self, target: str) -> list[tuple[int, int]]:
        """Return a table's parked turns in order, each with its number of events."""
        rows = self.read(["turn", "kafka_offset"], target=target)
        counted = rows.group_by("turn").aggregate([("kafka_offset", "count")]).sort_by("turn").to_pylist()
        return [(row["turn"], row["kafka_offset_count"]) for row in counted]

    def park(
        self,
        target: str,
        reason: Reason = Reason.COMMAND,
        detail: str = "parked by command",
        marker: Marker | None = None,
    ) -> None:
        """Park a table by adding a row that has no event. With a marker, do nothing if the row was already added."""
        row = {"target": target, "turn": self.version(), "reason": reason.value, "detail": detail}
        self.append([{**row, "parked_at": time.time_ns() // 1000}], marker)

    def parked_by(self, marker: Marker) -> bool:
        """Return whether a commit with this marker, or with a later marker for the same app, exists."""
        done = self._open().transaction_version(marker.app)
        return done is not None and done >= marker.version

    def rebuild(self, target: str) -> int | None:
        """Return the turn in which a table's rebuild began, or None if the table is not being rebuilt."""
        return self._begun(target, Reason.REBUILD)

    def reload(self, target: str) -> int | None:
        """Return the turn in which a table's reload began, or None if the table is not being reloaded."""
        return self._begun(target, Reason.RELOAD)

    def _begun(self, target: str, reason: Reason) -> int | None:
        rows = self.read(["turn", "kafka_offset"], target=target, reason=reason.value)
        rows = rows.filter(pc.is_null(rows.column("kafka_offset")))  # excludes events that have arrived since
        turn: int | None = pc.max(rows.column("turn")).as_py()
        return turn

    def end_rebuild(self, target: str, last: int) -> None:
        """Remove the rows that mark a table's rebuilds up to a turn. If the table has parked events, it stays
        parked."""
        self._end(target, Reason.REBUILD, last)

    def end_reload(self, target: str, last: int) -> None:
        """Remove the rows that mark a table's reloads up to a turn. If the table has parked events, it stays parked."""
        self._end(target, Reason.RELOAD, last)

    def _end(self, target: str, reason: Reason, last: int) -> None:
        rows = f"{self._mine} AND target = {literal(target)} AND turn <= {last}"
        self._open().delete(f"{rows} AND reason = {literal(reason.value)} AND kafka_offset IS NULL")

    def loads(self, target: str) -> Iterator[tuple[str, str]]:
        """Return the scope and position of each parked event of a table that is from a load. The events are read one
        file at a time.
        """
        wanted = {"pipeline": self.pipeline, "target": target}
        files = self._open().to_pyarrow_dataset()
        condition = (ds.field("pipeline") == self.pipeline) & (ds.field("target") == target)
        for file in files.get_fragments(filter=condition):
            # Arrow must not filter inside files that deltalake has rewritten: see DeltaMirror.
            for batch in file.to_batches(schema=files.schema, columns=[*wanted, "value"]):
                for value in batch.filter(_all_equal(batch, wanted)).column("value"):
                    event = event_in(value.as_py())
                    if event is not None and event["op"] == _LOADED:
                        yield event["pos_scope"], event["pos"]

    def leave_out(self, target: str, partition: int, first: int, last: int) -> None:
        """Remove a table's parked events between two offsets, including the last one."""
        waiting = self.read(["kafka_partition", "kafka_offset"], target=target).to_pylist()
        if any(row["kafka_partition"] == partition and first <= row["kafka_offset"] <= last for row in waiting):
            rows = f"{self._mine} AND target = {literal(target)} AND kafka_partition = {partition}"
            self._open().delete(f"{rows} AND kafka_offset BETWEEN {first} AND {last}")

    def discard(self, target: str, sources: Iterable[TableId]) -> None:
        """Discard the events from these source tables that are parked under a name."""
        mine = f"{self._mine} AND target = {literal(target)}"
        for source in sources:
            named = (f"`{name}` {_equals(part)}" for name, part in source._asdict().items())
            self._open().delete(f"{mine} AND {' AND '.join(named)}")

    def remove(self, target: str, last: int) -> None:
        """Remove a table's turns up to and including the turn `last`."""
        mine = f"{self._mine} AND target = {literal(target)}"
        self._open().delete(f"{mine} AND turn <= {last}")


def _equals(value: str | None) -> str:
    return "IS NULL" if value is None else f"= {literal(value)}"


def _all_equal(batch: pa.RecordBatch, wanted: Mapping[str, str]) -> pa.Array:
    tests = [pc.equal(batch.column(name), value) for name, value in wanted.items()]
    kept = tests[0]
    for test in tests[1:]:
        kept = pc.and_(kept, test)
    return kept
