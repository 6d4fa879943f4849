"""Read an Iceberg table of events in a worker through pyiceberg, and write it by orders to Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.changes import Identity, Marker
from spark_sink.tables.history_reader import greatest_of
from spark_sink.tables.iceberg.open_table import IcebergOpened, summary_property, within
from spark_sink.tables.meta_columns import (
    ID,
    LOG_COLUMNS,
    POS,
    SCOPE,
)
from spark_sink.tables.spark_operations import Merge, Order
from spark_sink.tables.staging import Staging

# Metadata that each commit stores in its snapshot, as JSON, so that the next batch need not read the table.
GREATEST_PROPERTY = "cdc.greatest"


class IcebergLog(IcebergOpened):
    """A table that stores the events of one source table."""

    def __init__(self, table: Table, shape: TableShape, choice: Choice, name: str, staging: Staging) -> None:
        super().__init__(table, shape, choice)
        self._ordered: list[Order] = []
        self.orders = self._ordered
        self._name = name
        self._staging = staging

    def greatest(self) -> Mapping[str, str]:
        told = summary_property(self._table.metadata, GREATEST_PROPERTY)
        if told is None:
            return greatest_of(self._read([SCOPE, POS]))
        stored: dict[str, str] = json.loads(told)
        return stored

    def known(self, wanted: Collection[Identity]) -> set[Identity]:
        places = [one.pos for one in wanted]
        ids = pa.array({one.id for one in wanted}, pa.string())
        found: set[Identity] = set()
        for batch in self._read([ID, SCOPE, POS], within({POS: (min(places), max(places))})):
            same = batch.filter(pc.is_in(batch.column(ID), ids))
            found.update(map(Identity, *(same.column(name).to_pylist() for name in (ID, SCOPE, POS))))
        return found & set(wanted)

    def append(self, rows: pa.Table, greatest: Mapping[str, str], *markers: Marker) -> None:
        types = {**self.shape.types, **LOG_COLUMNS}
        reach = pc.min_max(rows.column(POS))
        self._ordered.append(
            Merge(
                path=self._staging.put(self._name, rows),
                columns={name: types[name] for name in rows.column_names},
                kept=(),
                key=(ID, SCOPE, POS),
                bounds={POS: (reach["min"].as_py(), reach["max"].as_py())},
                inserts_only=True,
                version=self.version,
                marker=markers[0] if markers else None,
                summary={GREATEST_PROPERTY: json.dumps(greatest, sort_keys=True)},
            )
        )
