"""The rows that operators have erased, so that no repeated event brings them back. Keys are stored as digests."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec
import pyarrow as pa

from spark_sink.events.erased_keys import ErasedKeys, RowKey
from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.delta.control_tables import ControlTable, rows_of

NAME = f"{RESERVED}.erased"

ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string()),
        pa.field("target", pa.string()),
        pa.field("columns", pa.list_(pa.string())),
        pa.field("digest", pa.string()),
        pa.field("positions", pa.map_(pa.string(), pa.string())),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


class ErasedTable(ControlTable):
    """The table `_cdc.erased`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, NAME, pipeline, ARROW)
        self._warehouse = warehouse
        self._keys: Mapping[str, ErasedKeys] | None = None

    def add(self, target: str, key: RowKey, positions: Mapping[str, str]) -> None:
        """Record that the events of a key are erased up to these positions."""
        row = {"target": target, **msgspec.structs.asdict(key), "positions": sorted(positions.items())}
        self.append([{**row, "at": time.time_ns() // 1000}])
        self._keys = None

    def keys(self) -> Mapping[str, ErasedKeys]:
        """Return the erased keys of each table. Every pipeline respects them, so that a table stays erased even if
        another pipeline writes it later.
        """
        if self._keys is None:
            found: dict[str, dict[RowKey, dict[str, str]]] = {}
            for row in rows_of(self._warehouse, NAME, ["target", "columns", "digest", "positions"]):
                key = RowKey(tuple(row["columns"]), row["digest"])
                limits = found.setdefault(row["target"], {}).setdefault(key, {})
                for scope, position in row["positions"]:
                    limits[scope] = max(position, limits.get(scope, ""))
            self._keys = found
        return self._keys
