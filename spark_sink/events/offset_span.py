"""The range that a batch covers: offsets in the topic, and positions in each scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from spark_sink.events import event_columns


class OffsetSpan(Struct, frozen=True):
    """The range that some records cover. For each partition, it has the first offset and the offset after the last
    record. For each scope, it has the greatest position.
    """

    begin: Mapping[int, int] = {}
    end: Mapping[int, int] = {}
    positions: Mapping[str, str] = {}

    @property
    def offsets(self) -> int:
        """Return the number of offsets that the range covers in all partitions together."""
        return sum(self.end.values()) - sum(self.begin.values())

    @classmethod
    def of(cls, records: pa.Table) -> OffsetSpan:
        """Return the range that the records cover. Each record has a partition and an offset, and row events also have
        pos and pos_scope.
        """
        if len(records) <= event_columns.FEW:
            fields = (records.column(name).to_pylist() for name in ("partition", "offset", "pos_scope", "pos"))
            return merge_spans(cls._of_record(*values) for values in zip(*fields, strict=True))
        offsets = records.select(["partition", "offset"]).group_by("partition", use_threads=False)
        reach = offsets.aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
        rows = records.select(["pos_scope", "pos"]).filter(pc.is_valid(records.column("pos_scope")))
        greatest = rows.group_by("pos_scope", use_threads=False).aggregate([("pos", "max")]).to_pylist()
        return cls(
            {row["partition"]: row["offset_min"] for row in reach},
            {row["partition"]: row["offset_max"] + 1 for row in reach},
            {row["pos_scope"]: row["pos_max"] for row in greatest},
        )

    @classmethod
    def _of_record(cls, partition: int, offset: int, scope: str | None, pos: str) -> OffsetSpan:
        return cls({partition: offset}, {partition: offset + 1}, {} if scope is None else {scope: pos})


def merge_spans(extents: Iterable[OffsetSpan]) -> OffsetSpan:
    """Return the span that covers all of the given spans."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    positions: dict[str, str] = {}
    for extent in extents:
        for partition, offset in extent.begin.items():
            begin[partition] = min(offset, begin.get(partition, offset))
        for partition, offset in extent.end.items():
            end[partition] = max(offset, end.get(partition, offset))
        for scope, pos in extent.positions.items():
            positions[scope] = max(pos, positions.get(scope, pos))
    return OffsetSpan(begin, end, positions)


NOWHERE = OffsetSpan()
