"""Open the Iceberg tables of a catalog in a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyiceberg.table import Table

from spark_sink.errors import FatalError
from spark_sink.schema.engine_choice import EngineRules, choose_for_iceberg
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.layout import FileLayout, WriteMode
from spark_sink.schema.reader_rules import ReaderFeature
from spark_sink.schema.table_spec import Mode, match_rule
from spark_sink.tables.iceberg.catalogs import TableCatalog
from spark_sink.tables.iceberg.history import IcebergHistory
from spark_sink.tables.iceberg.log import IcebergLog
from spark_sink.tables.iceberg.mirror import IcebergMirror
from spark_sink.tables.iceberg.open_table import ancestors, buckets_of, shape_of
from spark_sink.tables.staging import Staging
from spark_sink.tables.table_properties import layout_from

# The features of each format version, without and with changed rows next to the data files.
_FEATURES = {
    2: (ReaderFeature.ICEBERG_2, ReaderFeature.POSITION_DELETES),
    3: (ReaderFeature.ICEBERG_3, ReaderFeature.ICEBERG_DELETION_VECTORS),
}


@dataclass(frozen=True)
class IcebergTables:
    """The Iceberg tables in a catalog.

    Args:
        warehouse: the folder for staged files.
        app: the pipeline and the checkpoint, which identify the staged files.
        buckets: the number of buckets for new tables, keyed by name or pattern.
    """

    warehouse: str
    catalog: TableCatalog
    app: str = ""
    engines: EngineRules = field(default_factory=EngineRules)
    buckets: Mapping[str, int] = field(default_factory=dict)

    def open(self, name: str) -> IcebergMirror | IcebergLog | IcebergHistory | None:
        table = self.catalog.load(name)
        if table is None:
            return None
        shape = shape_of(table.metadata)
        # A layout with partitions takes precedence over `tables.buckets`.
        has_own = shape.mode == Mode.CHANGELOG or layout_from(table.metadata.properties).partition
        wanted = None if has_own else match_rule(name, self.buckets)
        choice = choose_for_iceberg(name, self.engines, buckets_of(table.metadata), wanted)
        if shape.mode == Mode.CHANGELOG:
            return IcebergLog(table, shape, choice, name, self.staging)
        if shape.mode == Mode.HISTORY:
            return IcebergHistory(table, shape, choice, name, self.staging)
        return IcebergMirror(table, shape, choice, name, self.staging)

    def shape(self, name: str) -> TableShape | None:
        """Return a table's shape, or None if the table does not exist."""
        table = self.catalog.load(name)
        return None if table is None else shape_of(table.metadata)

    def layout(self, name: str) -> FileLayout | None:
        """Return the layout that a table's properties record, or None if the table does not exist."""
        table = self.catalog.load(name)
        return None if table is None else layout_from(table.metadata.properties)

    def reader_features(self, name: str) -> frozenset[str]:
        """Return the features that readers of a table must support, now or after the next change to a row. The result
        is empty if the table does not exist.
        """
        table = self.catalog.load(name)
        if table is None:
            return frozenset()
        version, deletes = _FEATURES[table.metadata.format_version]
        snapshot = table.metadata.current_snapshot()
        summary = None if snapshot is None else snapshot.summary
        has_deletes = summary is not None and summary.get("total-delete-files", "0") != "0"
        never = table.properties.get("write.merge.mode") == WriteMode.COPY_ON_WRITE
        return frozenset({version.value, *(() if never and not has_deletes else (deletes.value,))})

    def exists(self, name: str) -> bool:
        """Return whether the table exists, regardless of who created it."""
        return self.catalog.exists(name)

    def spelled(self, name: str) -> str | None:
        """Return the table's actual name, ignoring case, or None."""
        return self.catalog.spelled(name)

    def as_of(self, name: str, moment: datetime) -> IcebergMirror | None:
        table = self.catalog.load(name)
        if table is None:
            return None
        kept = list(ancestors(table.metadata))
        then = next((one for one in kept if one.timestamp_ms <= moment.timestamp() * 1000), None)
        if then is None:
            # A program that expires snapshots can remove the ids of expired snapshots from the remaining snapshots, but
            # cannot change the remaining snapshots' sequence numbers.
            if kept and (kept[-1].sequence_number or 0) > 1:
                raise FatalError(f"the snapshots of {name} do not reach back to {moment.isoformat()}")
            return None
        return self._mirror(name, table, then.snapshot_id)

    def at(self, name: str, version: int) -> IcebergMirror | None:
        """Return a version of a mirror, or None if the table has another mode.

        Raises:
            FatalError: the version no longer exists.
        """
        table = self.catalog.load(name)
        if table is None or table.snapshot_by_id(version) is None:
            raise FatalError(f"snapshot {version} of {name} no longer exists")
        return self._mirror(name, table, version)

    def _mirror(self, name: str, table: Table, snapshot: int) -> IcebergMirror | None:
        shape = shape_of(table.metadata, table.snapshot_by_id(snapshot))
        if shape.mode != Mode.MIRROR:
            return None
        choice = choose_for_iceberg(name, self.engines, buckets_of(table.metadata))
        return IcebergMirror(table, shape, choice, name, self.staging, snapshot)

    @property
    def staging(self) -> Staging:
        return Staging(self.warehouse, self.app)
