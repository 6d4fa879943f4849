"""How far the tables are behind the topic when a batch has ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from pyspark.sql import SparkSession

from spark_sink.spark_session import hadoop_folder

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
        """How many records are to come after a batch; None when that cannot be said now."""
        try:
            planned = planned_offsets(self._entry(batch), self._topic)
            ends = self._ends()
        except Exception as error:
            # Whatever it is: the batch is applied, and nobody waits for this number.
            log.warning("lag not known", batch=batch, reason=str(error).strip().partition("\n")[0])
            return None
        return sum(max(0, end - planned.get(partition, 0)) for partition, end in ends.items()) if ends else None


def offset_entry(spark: SparkSession, checkpoint: str, batch: int) -> str:
    """A batch in the log of offsets of a checkpoint folder."""
    files, folder = hadoop_folder(spark, checkpoint)
    stored = files.open(folder.suffix(f"/offsets/{batch}"))
    try:
        jvm: Any = spark._jvm
        return str(jvm.org.apache.commons.io.IOUtils.toString(stored, "UTF-8"))
    finally:
        stored.close()


def planned_offsets(text: str, topic: str) -> Mapping[int, int]:
    """By partition, the offset that a batch reaches: the last line of an entry of Spark's offset log, version 1.

    Raises:
        ValueError: it is of another version.
    """
    version, *_, last = text.splitlines()
    if version != "v1":
        raise ValueError(f"an offset log of version {version}, not v1")
    offsets: Mapping[str, int] = json.loads(last)[topic]
    return {int(partition): offset for partition, offset in offsets.items()}
