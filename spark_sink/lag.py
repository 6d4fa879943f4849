"""Compute the size of a batch, and how far the tables lag behind the topic after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import structlog

from spark_sink.spark.checkpoint import planned_offsets

log = structlog.get_logger()

# The timeout for querying where the topic ends. The batch waits for the answer.
PATIENCE_SECONDS = 2.0


class Lag:
    """Compares the planned end of a batch with the end of the previous batch and with the end of the topic.

    The plan is more accurate than the last record that was read. Transaction markers after this record also have
    offsets, and partitions without records do not appear in a batch.

    Args:
        entry: returns what Spark recorded before it began a batch.
        ends: returns the offset after the last readable record in each partition.
        begins: returns the offset in each partition at which the first batch begins, or None if nothing needs it.
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
        # A plan never changes, and each plan is needed three times: before its batch, after its batch, and before the
        # next batch.
        self._planned = lru_cache(2)(self._read_plan)

    def taken(self, batch: int) -> int | None:
        """Return the number of offsets in a batch, or None if the number is unknown. The batch has at most this many
        records.
        """
        try:
            before = self._before(batch)
            return None if before is None else _beyond(self._planned(batch), before)
        except Exception as error:
            _log_unknown("the size of a batch is unknown", batch, error)
            return None

    def after(self, batch: int) -> int | None:
        """Return how many records follow a batch in the topic, or None if this is unknown."""
        try:
            planned = self._planned(batch)
            ends = self._ends()
        except Exception as error:
            _log_unknown("lag unknown", batch, error)
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
    """Log why a number is missing. A missing number never fails a batch."""
    log.warning(what, batch=batch, reason=str(error).strip().partition("\n")[0])
