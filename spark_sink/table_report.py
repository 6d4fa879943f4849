"""What a worker tells the driver about one table's events in a batch."""

from __future__ import annotations

from msgspec import Struct

from spark_sink.events.latency import NONE, Latency
from spark_sink.events.offset_span import NOWHERE, OffsetSpan
from spark_sink.schema.evolution import Step
from spark_sink.tables.spark_operations import Order


class TableReport(Struct):
    """What became of one table's events in a batch. `step` set: nothing yet, the table must be changed first.

    Args:
        table: its name in the lakehouse; of one whose name another has, or had, the name under which its events wait.
        source: the table as its source names it, which tells the tables of a route apart; "" where nothing does.
        engine: and `why`: who writes the table; "" for one that is not there.
        misconfigured: what the operator must change before the sink can go on.
        wants_records: the task cannot go on without the records as they came.
        orders: what the driver has to do; then the task goes on where there is `more`.
        version: of the table afterwards; where there are orders, the driver tells it.
        extent: of the whole route, told once.
        latency: of what the task itself committed.
        megabytes: what the worker's process held then; 0 where that is not known.
    """

    table: str
    route: str
    bucket: int
    events: int
    source: str = ""
    step: Step | None = None
    engine: str = ""
    why: str = ""
    wants_records: bool = False
    orders: list[Order] = []
    more: bool = False
    refused: str | None = None
    parked: int = 0
    misconfigured: str | None = None
    commits: int = 0
    skipped: int = 0
    version: int | None = None
    extent: OffsetSpan = NOWHERE
    rows: int = 0
    deleted: int = 0
    stale: dict[str, int] = {}
    late: int = 0
    scope_changes: int = 0
    rejected: dict[str, int] = {}
    ignored: dict[str, int] = {}
    latency: Latency = NONE
    fold_ms: float = 0
    write_ms: float = 0
    megabytes: int = 0

    @property
    def waits(self) -> bool:
        """Whether the driver must do something."""
        return self.step is not None or self.wants_records or bool(self.orders)

    @property
    def goes_on(self) -> bool:
        """Whether the task has more to do, once that is done."""
        return self.step is not None or self.wants_records or self.more
