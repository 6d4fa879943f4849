"""One cut through all tables and the topic: the version of each table, and the offsets behind which its events go on.

Folded from the rows of `_cdc.batches`. A cut lies behind a batch. What a resume or a sweep did counts from the next
batch on: before that a batch may have been begun, of which the tables hold more than any row says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from spark_sink.errors import FatalError


@dataclass(frozen=True)
class ManifestRow:
    """The fields of a row of the manifest that a cut needs; `batch` is None between batches."""

    checkpoint: str
    batch: int | None
    ended_at: datetime
    topic: str
    to_offsets: Mapping[int, int]
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Cut:
    """All tables as they were after one batch. `offsets`: by partition, the first that was not read."""

    checkpoint: str
    batch: int
    ended_at: datetime
    offsets: Mapping[int, int]
    versions: Mapping[str, int]


def fold(rows: Iterable[ManifestRow], topic: str, batch: int | None = None, checkpoint: str | None = None) -> Cut:
    """The cut behind a batch; without number behind the newest, and of the checkpoint that ended that.

    What was before it under other checkpoints counts, too. A table has the version that was told last, as one that was
    made anew counts from the beginning; a partition the greatest offset, as a checkpoint may have read again what
    another had read.

    Raises:
        FatalError: there is no such batch.
    """
    # Their times rise from row to row, whoever wrote them: see BatchBook.
    ordered = sorted(rows, key=lambda row: row.ended_at)
    ends = {(row.checkpoint, row.batch): row for row in ordered if row.batch is not None and row.topic == topic}
    if not ends:
        raise FatalError(f"no batch of topic {topic} has ended under this pipeline")
    id = next(reversed(ends))[0] if checkpoint is None else checkpoint
    number = max((number for of, number in ends if of == id and batch in (None, number)), default=None)
    if number is None:
        batches = "batch" if batch is None else f"batch {batch}"
        raise FatalError(f"there is no {batches} of checkpoint {id}; there are {_known(ends)}")
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
    """The offsets behind which the events of a parked table go on: from the first that waits in its partition."""
    return {partition: min(offset, waiting.get(partition, offset)) for partition, offset in cut.offsets.items()}


def _known(ends: Iterable[tuple[str, int]]) -> str:
    batches: dict[str, list[int]] = {}
    for id, number in ends:
        batches.setdefault(id, []).append(number)
    return ", ".join(f"{min(numbers)} to {max(numbers)} of {id}" for id, numbers in batches.items())
