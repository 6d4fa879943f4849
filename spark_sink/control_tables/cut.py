"""Compute consistent cuts through all tables and the topic. A cut has each table's version and the next offset in each
partition.

A cut describes the state after a batch. It is computed from the rows in `_cdc.batches`. A resume or a sweep is included
only from the next batch on. Another batch may already have started before it and written more than the rows show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_sink.errors import FatalError


@dataclass(frozen=True)
class ManifestRow:
    """The fields of a manifest row that a cut needs. If the row describes a change between batches, it has no
    `batch`.
    """

    checkpoint: str
    batch: int | None
    ended_at: datetime
    topic: str
    to_offsets: Mapping[int, int]
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Cut:
    """The state of all tables after one batch. `offsets` has the first unread offset in each partition."""

    checkpoint: str
    batch: int
    ended_at: datetime
    offsets: Mapping[int, int]
    versions: Mapping[str, int]


def fold(rows: Iterable[ManifestRow], topic: str, batch: int | None = None, checkpoint: str | None = None) -> Cut:
    """Return the cut after a batch. Without a batch number, use the newest batch and the checkpoint that ended it.

    Earlier batches under other checkpoints are included, too. A table gets the version that was recorded last, because
    a recreated table starts again at its first version. A partition gets its highest offset, because one checkpoint may
    have read records that another one had already read.

    Raises:
        FatalError: the batch does not exist.
    """
    # The times increase from row to row, whichever process wrote the rows: see BatchTable.
    ordered = sorted(rows, key=lambda row: row.ended_at)
    ends = {(row.checkpoint, row.batch): row for row in ordered if row.batch is not None and row.topic == topic}
    if not ends:
        raise FatalError(f"this pipeline has not completed any batch of topic {topic}")
    id = next(reversed(ends))[0] if checkpoint is None else checkpoint
    number = max((number for of, number in ends if of == id and batch in (None, number)), default=None)
    if number is None:
        batches = "batch" if batch is None else f"batch {batch}"
        raise FatalError(f"checkpoint {id} has no {batches}; existing batches: {_known(ends)}")
    end = ends[id, number].ended_at
    offsets: dict[int, int] = {}
    versions: dict[str, int] = {}
    for row in ordered:
        if row.ended_at > end:
            break
        versions |= row.versions
        if row.topic == topic:
            for partition, offset in row.to_offsets.items():
                offsets[partition] = max(offset, offsets.get(partition, 0))
    return Cut(id, number, end, offsets, versions)


def resume_offsets(cut: Cut, waiting: Mapping[int, int]) -> dict[int, int]:
    """Return the offsets at which a parked table's events continue. In each partition, this is its first parked
    event.
    """
    return {partition: min(offset, waiting.get(partition, offset)) for partition, offset in cut.offsets.items()}


def _known(ends: Iterable[tuple[str, int]]) -> str:
    batches: dict[str, list[int]] = {}
    for id, number in ends:
        batches.setdefault(id, []).append(number)
    return ", ".join(f"{min(numbers)} to {max(numbers)} of {id}" for id, numbers in batches.items())
