"""Read an Iceberg table of row versions in a worker through pyiceberg, and write it by orders to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from spark_sink.model.version_timeline import TakenKey, Truncate
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Marker
from spark_sink.tables.history_reader import (
    HistoryReader,
    covered,
    stored_taken_keys,
    stored_truncates,
    taken_keys_property,
    truncates_property,
)
from spark_sink.tables.iceberg.open_table import IcebergOpened, near
from spark_sink.tables.meta_columns import CURRENT, HISTORY_COLUMNS, POS, SCOPE
from spark_sink.tables.reach import Reach, bounds_of, reach_of, values_of
from spark_sink.tables.spark_operations import CloseVersions, Merge, Order, SetProperties
from spark_sink.tables.staging import Staging


class IcebergHistory(HistoryReader, IcebergOpened):
    """A table that contains the row versions of one source table."""

    def __init__(self, table: Table, shape: TableShape, choice: Choice, name: str, staging: Staging) -> None:
        IcebergOpened.__init__(self, table, shape, choice)
        self._ordered: list[Order] = []
        self.orders = self._ordered
        self._name = name
        self._staging = staging
        self._truncates = stored_truncates(table.properties)
        self.taken_keys = stored_taken_keys(table.properties)

    @property
    def truncates(self) -> Sequence[Truncate]:
        return self._truncates

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        return self._read(names, near(reach or {}, self.shape.types))

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        types = {**self.shape.types, **HISTORY_COLUMNS}
        keys = set(zip(*(rows.column(name).to_pylist() for name in self.shape.key), strict=True))
        reach = reach_of(keys, self.shape.key)
        self._ordered.append(
            Merge(
                path=self._staging.put(self._name, rows),
                columns={name: types[name] for name in rows.column_names},
                kept=(),
                key=(*self.shape.key, SCOPE, POS),
                bounds=dict(bounds_of(reach, self.shape.types)),
                values=values_of(reach, self.shape.types),
                inserts_only=adds_only,
                version=self.version,
                marker=markers[0] if markers else None,
            )
        )

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None:
        self._truncates = truncates
        self._ordered.append(SetProperties(truncates_property(truncates)))

    def keep_taken_keys(self, taken: Sequence[TakenKey]) -> None:
        self.taken_keys = taken
        self._ordered.append(SetProperties(taken_keys_property(taken)))

    def close(self, truncate: Truncate, marker: Marker) -> bool:
        met = any(
            pc.any(pc.and_(batch.column(CURRENT), covered(batch.column(SCOPE), batch.column(POS), truncate))).as_py()
            for batch in self._scan([SCOPE, POS, CURRENT])
        )
        if met:
            self._ordered.append(CloseVersions(dict(truncate.floors), truncate.ts, marker))
        return met
