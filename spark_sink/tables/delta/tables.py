"""The Delta tables in a warehouse, opened in a worker, each with the engine that writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import FatalError, Reason, Refused
from spark_sink.events import parking, quarantine
from spark_sink.schema.engine_choice import BEYOND_FILES, BY_FILE, Engine, EngineRules, choose, features
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.reader_rules import ReaderFeature
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.files import DataFiles
from spark_sink.tables.delta.history import DeltaHistory
from spark_sink.tables.delta.log import DeltaLog
from spark_sink.tables.delta.mirror import DeltaMirror
from spark_sink.tables.delta.open_table import commit, committing, shape_of
from spark_sink.tables.delta.staged import StagedMirror
from spark_sink.tables.locations import location, spelled
from spark_sink.tables.protocols import ChangelogTable, HistoryTable, MirrorTable
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_properties import layout_from


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables in a warehouse.

    Args:
        app: the pipeline and the checkpoint, which identify the staged files.
    """

    warehouse: str
    app: str = ""
    engines: EngineRules = field(default_factory=EngineRules)

    def open(self, name: str) -> MirrorTable | ChangelogTable | HistoryTable | None:
        try:
            opened = DeltaTable(location(self.warehouse, name))
        except TableNotFoundError:
            return None
        return self._opened(name, opened)

    def shape(self, name: str) -> TableShape | None:
        """Return a table's shape, or None if the table does not exist."""
        try:
            return shape_of(DeltaTable(location(self.warehouse, name)))
        except TableNotFoundError:
            return None

    def layout(self, name: str) -> FileLayout | None:
        """Return the layout that a table's properties record, or None if the table does not exist."""
        try:
            return layout_from(DeltaTable(location(self.warehouse, name)).metadata().configuration)
        except TableNotFoundError:
            return None

    def reader_features(self, name: str) -> frozenset[str]:
        """Return the features that readers of a table must support; empty if the table does not exist."""
        try:
            protocol = DeltaTable(location(self.warehouse, name)).protocol()
        except TableNotFoundError:
            return frozenset()
        by_version = {ReaderFeature.COLUMN_MAPPING.value} if protocol.min_reader_version == 2 else set()
        return frozenset({ReaderFeature.DELTA.value, *by_version, *(protocol.reader_features or ())})

    def exists(self, name: str) -> bool:
        """Return whether the table exists, regardless of who created it."""
        return DeltaTable.is_deltatable(location(self.warehouse, name))

    def spelled(self, name: str) -> str | None:
        """Return the table's actual name, ignoring case, or None."""
        return spelled(self.warehouse, name, DeltaTable.is_deltatable)

    def as_of(self, name: str, moment: datetime) -> MirrorTable | None:
        opened = DeltaTable(location(self.warehouse, name))
        # The versions, newest first. The commit times come from the log files, in milliseconds.
        earlier = (c["version"] for c in opened.history() if c["timestamp"] <= moment.timestamp() * 1000)
        version = next(earlier, None)
        if version is None:
            if opened.history()[-1]["version"] > 0:
                raise FatalError(f"the log of {name} does not reach back to {moment.isoformat()}")
            return None
        return self.at(name, version)

    def at(self, name: str, version: int) -> MirrorTable | None:
        """Return a version of a mirror, or None if the table has another mode.

        Raises:
            FatalError: the version no longer exists.
        """
        try:
            # Read the table with the features that it had at that time, because files from its current engine may need
            # another reader.
            found = self._opened(name, DeltaTable(location(self.warehouse, name), version))
        except DeltaError as error:
            raise FatalError(f"version {version} of {name} cannot be read: {error}") from None
        return found if isinstance(found, MirrorTable) else None

    def _opened(self, name: str, opened: DeltaTable) -> MirrorTable | ChangelogTable | HistoryTable:
        has = features_of(opened)
        shape = shape_of(opened)
        files = DataFiles(opened)
        choice = choose(name, shape.mode, has, lambda: files.bytes, self.engines)
        if has & BEYOND_FILES or opened.metadata().partition_columns:
            # Such a table could no longer be read if it also had widened types.
            choice = choice._replace(widens=False)
        if shape.mode == Mode.CHANGELOG:
            return DeltaLog(opened, shape, choice)
        if shape.mode == Mode.HISTORY:
            return DeltaHistory(opened, shape, choice, files)
        if choice.engine is Engine.FUSED:
            return DeltaMirror(opened, shape, choice, files, self.warehouse, name)
        by_file = bool(has & BY_FILE)
        if by_file and opened.metadata().partition_columns:
            raise Refused(
                Reason.TABLE_REFUSED,
                "the table is partitioned and also uses features whose files can only be read one at a time",
            )
        return StagedMirror(opened, shape, choice, name, self.staging, by_file=by_file)

    @property
    def staging(self) -> Staging:
        return Staging(self.warehouse, self.app)

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        self._append(quarantine.NAME, rows, marker)

    def park(self, rows: pa.Table, marker: Marker) -> None:
        self._append(parking.NAME, rows, marker)

    def parked(self, app: str) -> int | None:
        return DeltaTable(location(self.warehouse, parking.NAME)).transaction_version(app)

    def _append(self, name: str, rows: pa.Table, marker: Marker) -> None:
        """Append to one of the sink's own tables. If the marker shows that this was already done, do nothing."""
        table = DeltaTable(location(self.warehouse, name))
        done = table.transaction_version(marker.app)
        if done is None or done < marker.version:
            with committing(table, marker):
                write_deltalake(table, rows, mode="append", commit_properties=commit(marker))


def features_of(table: DeltaTable) -> frozenset[str]:
    """Return the features that writers must support for a table."""
    protocol = table.protocol()
    has = features(protocol.min_writer_version, frozenset(protocol.writer_features or ()))
    # When deltalake 1.6 sets a property, such as the floors, it adds the variant feature to every table with named
    # features.
    unused = not any("Variant" in str(field.type) for field in table.schema().fields)
    return has - {"variantType"} if unused else has
