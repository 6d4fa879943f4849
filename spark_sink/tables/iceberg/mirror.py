"""Read an Iceberg mirror in a worker through pyiceberg, and write it by orders to Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.table import Table

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.deleted_rows import DeletedRows, marker_app
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY, IcebergOpened, near, summary_property, version_of
from spark_sink.tables.reach import Reach, Values, values_of
from spark_sink.tables.staging import OrderingMirror, Staging
from spark_sink.tables.table_properties import FLOORS_PROPERTY


class IcebergMirror(OrderingMirror, IcebergOpened):
    """A table that mirrors one source table."""

    def __init__(
        self,
        table: Table,
        shape: TableShape,
        choice: Choice,
        name: str,
        staging: Staging,
        snapshot: int | None = None,
    ) -> None:
        IcebergOpened.__init__(self, table, shape, choice, snapshot)
        generation = self.applied(marker_app(shape))
        deleted_rows = DeletedRows(staging.warehouse, name, shape, generation)
        is_marked = summary_property(table.metadata, MARKERS_PROPERTY, snapshot) is not None
        if table.current_snapshot() is not None and not is_marked:
            deleted_rows.use_newest()
        OrderingMirror.__init__(self, name, version_of(table.metadata), staging, deleted_rows)

    def applied(self, app: str) -> int | None:
        return IcebergOpened.applied(self, app)

    def _stored_floors(self) -> Mapping[str, str]:
        stored: dict[str, str] = json.loads(self._table.properties.get(FLOORS_PROPERTY, "{}"))
        return stored

    def _scan_files(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        return self._read(names, near(reach or {}, self.shape.types))

    def _values(self, reach: Reach) -> Values:
        return values_of(reach, self.shape.types)
