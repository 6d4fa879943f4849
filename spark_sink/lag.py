"""The size of a batch, and the lag of the tables behind the topic at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import structlog

from spark_sink.spark.checkpoint import planned_offsets

log = structlog.get_logger()

# The timeout of a request for the end of the topic, for which the batch waits.
PATIENCE_SECONDS = 2.0


class Lag:
    """Compares the planned end of a batch with the previous batch and with the end of the topic.

    The plan is used instead of the last record read, because transaction markers after that record have offsets too,
    and partitions without records are in no batch.

    Args:
        entry: returns what Spark recorded before it began a batch.
        ends: returns, by partition, the offset after the last readable record.
        begins: returns, by partition, the offset at which the first batch begins; None if this is not requested.
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
        # A plan never changes, and a batch is requested before it, after it, and before the next one.
        self._planned = lru_cache(2)(self._read_plan)

    def taken(self, batch: int) -> int | None:
        """Return the number of offsets in a batch, which has at most this many records; None if it is unknown."""
        try:
            before = self._before(batch)
            return None if before is None else _beyond(self._planned(batch), before)
        except Exception as error:
            _log_unknown("size of batch unknown", batch, error)
            return None

    def after(self, batch: int) -> int | None:
        """Return the number of records after a batch; None if it is unknown."""
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
    """Log why a number is missing. No batch fails because of it."""
    log.warning(what, batch=batch, reason=str(error).strip().partition("\n")[0])
