"""Cuts through all tables and the topic: the version of each table, and the offsets at which its events continue.

A cut is computed from the rows of `_cdc.batches`, and is after a batch. The effects of a resume or a sweep count from
the next batch on: before it a batch may have begun, and tables may have more of it than any row shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_sink.errors import FatalError


@dataclass(frozen=True)
class ManifestRow:
    """The fields in a row of the manifest that a cut needs; `batch` is missing between batches."""

    checkpoint: str
    batch: int | None
    ended_at: datetime
    topic: str
    to_offsets: Mapping[int, int]
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Cut:
    """The state of all tables after one batch. `offsets`: by partition, the first offset that was not read."""

    checkpoint: str
    batch: int
    ended_at: datetime
    offsets: Mapping[int, int]
    versions: Mapping[str, int]


def fold(rows: Iterable[ManifestRow], topic: str, batch: int | None = None, checkpoint: str | None = None) -> Cut:
    """Return the cut after a batch; without a number, after the newest one, and for the checkpoint that ended it.

    Earlier batches under other checkpoints count, too. A table has its last recorded version, because a table that is
    created again counts from the beginning. A partition has its greatest offset, because a checkpoint may have read
    again what another one had read.

    Raises:
        FatalError: the batch does not exist.
    """
    # The times increase from row to row, whoever wrote them: see BatchTable.
    ordered = sorted(rows, key=lambda row: row.ended_at)
    ends = {(row.checkpoint, row.batch): row for row in ordered if row.batch is not None and row.topic == topic}
    if not ends:
        raise FatalError(f"no batch of topic {topic} has ended under this pipeline")
    id = next(reversed(ends))[0] if checkpoint is None else checkpoint
    number = max((number for of, number in ends if of == id and batch in (None, number)), default=None)
    if number is None:
        batches = "batch" if batch is None else f"batch {batch}"
        raise FatalError(f"no {batches} of checkpoint {id} exists; existing batches: {_known(ends)}")
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
    """Return the offsets at which the events of a parked table continue: at the first waiting one of each partition."""
    return {partition: min(offset, waiting.get(partition, offset)) for partition, offset in cut.offsets.items()}


def _known(ends: Iterable[tuple[str, int]]) -> str:
    batches: dict[str, list[int]] = {}
    for id, number in ends:
        batches.setdefault(id, []).append(number)
    return ", ".join(f"{min(numbers)} to {max(numbers)} of {id}" for id, numbers in batches.items())
