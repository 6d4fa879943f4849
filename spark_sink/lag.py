"""The size of a batch, and the lag of the tables behind the topic when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import structlog

from spark_sink.spark.checkpoint import planned_offsets

log = structlog.get_logger()

# Each question about the end of the topic waits so long for its answer, and with it the batch.
PATIENCE_SECONDS = 2.0


class Lag:
    """Compares what Spark planned a batch to reach with the batch before, and with the end of the topic.

    The plan, not the last record that was read: behind that there may be marks of transactions, which are no records
    and have offsets, and partitions without records are in no batch.

    Args:
        entry: what Spark wrote down before it began a batch.
        ends: by partition, the offset after the last record that may be read.
        begins: by partition, the offset where the first batch begins; None where that is not asked for.
    """

    def __init__(
        self,
        topic: str,
        entry: Callable[[int], str],
        ends: Callable[[], Mapping[int, int]],
        begins: Callable[[], Mapping[int, int]] | None = None,
    ) -> None:
        self._topic = topic
        self._entry = entry
        self._ends = ends
        self._begins = begins
        # What is planned stays; a batch is asked about before it, behind it, and before the next one.
        self._planned = lru_cache(2)(self._read_plan)

    def taken(self, batch: int) -> int | None:
        """Return how many offsets a batch takes, at most so many records; None when that cannot be said now."""
        try:
            before = self._before(batch)
            return None if before is None else _beyond(self._planned(batch), before)
        except Exception as error:
            _log_unknown("size of batch not known", batch, error)
            return None

    def after(self, batch: int) -> int | None:
        """Return how many records are to come after a batch; None when that cannot be said now."""
        try:
            planned = self._planned(batch)
            ends = self._ends()
        except Exception as error:
            _log_unknown("lag not known", batch, error)
            return None
        return _beyond(ends, planned) if ends else None

    def _before(self, batch: int) -> Mapping[int, int] | None:
        if batch:
            return self._planned(batch - 1)
        return None if self._begins is None else self._begins()

    def _read_plan(self, batch: int) -> Mapping[int, int]:
        return planned_offsets(self._entry(batch), self._topic)


def _beyond(ends: Mapping[int, int], begins: Mapping[int, int]) -> int:
    return sum(max(0, end - begins.get(partition, 0)) for partition, end in ends.items())


def _log_unknown(what: str, batch: int, error: Exception) -> None:
    """Log why a number is missing. Whatever it is: nobody waits for this number, and no batch fails for it."""
    log.warning(what, batch=batch, reason=str(error).strip().partition("\n")[0])
