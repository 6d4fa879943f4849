"""Remember the rows that operators have erased, so that no repeated event brings them back. Keys are stored as
digests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

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
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("offsets", pa.map_(pa.int32(), pa.int64())),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


class Topic(NamedTuple):
    """The canonical topic and its id. A recreated topic has different events at the same offsets."""

    topic: str
    topic_id: str | None


class ErasedTable(ControlTable):
    """The table `_cdc.erased`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, NAME, pipeline, ARROW)
        self._warehouse = warehouse
        self._keys: Mapping[str, ErasedKeys] | None = None

    def add(self, target: str, key: RowKey, topic: Topic, offsets: Mapping[int, int]) -> None:
        """Record that the events of a key are erased up to these offsets of the canonical topic."""
        row = {"target": target, **msgspec.structs.asdict(key), **topic._asdict(), "offsets": sorted(offsets.items())}
        self.append([{**row, "at": time.time_ns() // 1000}])
        self._keys = None

    def keys(self, topic_now: Callable[[], Topic]) -> Mapping[str, ErasedKeys]:
        """Return the erased keys of each table. Every pipeline that reads the topic ignores the events of these keys.

        Args:
            topic_now: returns the topic. This reads a table, so call it only when you need the keys.
        """
        if self._keys is None:
            topic = topic_now()
            found: dict[str, dict[RowKey, dict[int, int]]] = {}
            for row in rows_of(self._warehouse, NAME, ["target", "columns", "digest", *Topic._fields, "offsets"]):
                if (row["topic"], row["topic_id"]) != topic:
                    continue
                key = RowKey(tuple(row["columns"]), row["digest"])
                ends = found.setdefault(row["target"], {}).setdefault(key, {})
                for partition, offset in row["offsets"]:
                    ends[partition] = max(offset, ends.get(partition, 0))
            self._keys = found
        return self._keys
