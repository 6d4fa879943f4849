"""Record when each maintenance step ran on each table. A restarted sink then does not repeat the step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.delta.control_tables import ControlTable

NAME = f"{RESERVED}.maintenance"

ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string()),
        pa.field("table", pa.string()),
        pa.field("step", pa.string()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("removed", pa.int64()),
        pa.field("added", pa.int64()),
    ]
)


class StepDone(NamedTuple):
    """A finished step. The numbers count files, or rows if the step removed rows."""

    table: str
    step: str
    removed: int = 0
    added: int = 0


class MaintenanceTable(ControlTable):
    """The table `_cdc.maintenance`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, NAME, pipeline, ARROW)

    def write(self, done: Sequence[StepDone]) -> None:
        now = time.time_ns() // 1000
        self.append([{**one._asdict(), "at": now} for one in done])

    def last(self, step: str) -> Mapping[str, float]:
        """Return when a step was last done on each table, in seconds since 1970."""
        rows = self.read(["table", "at"], step=step).group_by("table").aggregate([("at", "max")])
        return {row["table"]: row["at_max"].timestamp() for row in rows.to_pylist()}

    def forget_before(self, moment: float) -> int:
        """Delete the records of steps before a moment (seconds since 1970), and return how many were deleted."""
        return self.remove_before("at", moment)
