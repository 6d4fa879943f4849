"""The lag of the tables behind the topic when a batch has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from spark_sink.checkpoint import planned_offsets

log = structlog.get_logger()

# Each question about the end of the topic waits so long for its answer, and with it the batch.
PATIENCE_SECONDS = 2.0


class Lag:
    """Compares what Spark planned a batch to reach with the end of the topic.

    The plan, not the last record that was read: behind that there may be marks of transactions, which are no records
    and have offsets, and partitions without records are in no batch.

    Args:
        entry: what Spark wrote down before it began a batch.
        ends: by partition, the offset after the last record that may be read.
    """

    def __init__(self, topic: str, entry: Callable[[int], str], ends: Callable[[], Mapping[int, int]]) -> None:
        self._topic = topic
        self._entry = entry
        self._ends = ends

    def after(self, batch: int) -> int | None:
        """Return how many records are to come after a batch; None when that cannot be said now."""
        try:
            planned = planned_offsets(self._entry(batch), self._topic)
            ends = self._ends()
        except Exception as error:
            # Whatever it is: the batch is applied, and nobody waits for this number.
            log.warning("lag not known", batch=batch, reason=str(error).strip().partition("\n")[0])
            return None
        return sum(max(0, end - planned.get(partition, 0)) for partition, end in ends.items()) if ends else None
