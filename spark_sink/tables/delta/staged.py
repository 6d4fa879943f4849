"""Delta tables that Spark writes, as seen by a worker. The worker reads stored rows, stages changes, and requests their
execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable

from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.delta.data_files import find, is_readable, scan
from spark_sink.tables.delta.files import by_file, by_query
from spark_sink.tables.delta.open_table import DeltaOpened, floors_of
from spark_sink.tables.meta_columns import META_COLUMNS
from spark_sink.tables.reach import Reach
from spark_sink.tables.staging import OrderingMirror, Staging


class StagedMirror(OrderingMirror, DeltaOpened):
    """One source table's mirror, written by Spark."""

    def __init__(
        self,
        table: DeltaTable,
        shape: TableShape,
        choice: Choice,
        name: str,
        staging: Staging,
        *,
        by_file: bool,
    ) -> None:
        DeltaOpened.__init__(self, table, shape, choice)
        deleted_rows = self.deleted_rows_in(staging.warehouse, name)
        OrderingMirror.__init__(self, name, table.version(), staging, deleted_rows)
        self._by_file = by_file

    def applied(self, app: str) -> int | None:
        return DeltaOpened.applied(self, app)

    def _stored_floors(self) -> Mapping[str, str]:
        return floors_of(self._table)

    def _find(self, names: Sequence[str], reach: Reach, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        if self._by_file or not is_readable(self._table):
            return super()._find(names, reach, wanted)
        return find(self._table, self._types(names), self._bounds(reach), wanted)

    def _scan_files(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        read = by_file if self._by_file else scan if is_readable(self._table) else by_query
        return read(self._table, self._types(names), {} if reach is None else self._bounds(reach))

    def _types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        sql = {**self.shape.types, **META_COLUMNS}
        return {name: arrow_type(sql[name]) for name in names}
