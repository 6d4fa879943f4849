"""Run a batch's task repeatedly. Between two runs, the driver does the work that the earlier run requested. Afterwards,
it combines the reports from all runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import msgspec

from spark_sink.errors import FatalError
from spark_sink.schema.evolution import Step
from spark_sink.table_report import (
    Conflict,
    Deferred,
    Done,
    NeedsDdl,
    NeedsRecords,
    NeedsSpark,
    Parked,
    TableReport,
    Unfinished,
)
from spark_sink.tables.spark_operations import Order


@dataclass
class DriverWork:
    """The work that a run leaves to the driver.

    Args:
        steps: the schema changes, each with its table.
        orders: the orders per table.
        carried: the routes whose raw records must be sent along with their events.
        again: the routes whose tasks must run again after the driver's work.
        refused: the tables with a refused request, each with the reason.
    """

    steps: list[tuple[str, Step]] = field(default_factory=list)
    orders: dict[str, Sequence[Order]] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, reports: Iterable[TableReport]) -> DriverWork:
        """Sort a run's reports by the work that they request."""
        work, conflicts = cls(), dict[str, str]()
        for report in reports:
            match report.outcome:
                case Done() | Parked() | Deferred():
                    pass
                case NeedsDdl(step):
                    work.steps.append((report.table, step))
                    work.again.add(report.route)
                case NeedsRecords():
                    work.carried.add(report.route)
                    work.again.add(report.route)
                case NeedsSpark(orders, more):
                    work.orders[report.table] = orders
                    work.again |= {report.route} if more else set()
                case Conflict(message):
                    conflicts[report.table] = message
                case _:
                    assert_never(report.outcome)
        return replace(work, refused=conflicts)

    def without(self, repeated: Collection[str]) -> DriverWork:
        """Return the work without tables that repeat a request. The driver refuses these, because they would repeat the
        request forever.
        """
        return replace(
            self,
            steps=[(table, step) for table, step in self.steps if table not in repeated],
            orders={table: orders for table, orders in self.orders.items() if table not in repeated},
            refused={
                **self.refused,
                **dict.fromkeys(repeated, "it requests the same change again after the change was made"),
            },
        )

    def __bool__(self) -> bool:
        return bool(self.steps or self.orders or self.carried or self.refused)


class SeenRequests:
    """The requests that tables have made in this batch."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def repeated(self, reports: Iterable[TableReport]) -> set[str]:
        """Record the requests in the reports, and return the tables that repeat one.

        Raises:
            FatalError: a table requests raw records that it has already received.
        """
        found = set()
        for report in reports:
            if not isinstance(report.outcome, Unfinished):
                continue
            request = msgspec.msgpack.encode((report.route, report.table, report.outcome), order="deterministic")
            if request in self._seen:
                if isinstance(report.outcome, NeedsRecords):
                    raise FatalError(f"the table {report.table} requests its raw records again after it received them")
                found.add(report.table)
            self._seen.add(request)
        return found


def merge_reports(runs: Sequence[Sequence[TableReport]]) -> list[TableReport]:
    """Return one report per table, with the table's state after the last run and the counts from all runs.

    A segment that a later run skips because an earlier run of the same batch applied it does not count as a replay.
    """
    tables: dict[tuple[str, str], TableReport] = {}
    for reports in runs:
        for report in reports:
            key = report.route, report.source or report.table
            earlier = tables.get(key)
            tables[key] = report if earlier is None else _after(earlier, report)
    return list(tables.values())


def _after(earlier: TableReport, report: TableReport) -> TableReport:
    # A task that requested a table change has not applied anything yet. If it skipped segments, an earlier attempt at
    # this batch had applied them.
    first = report if isinstance(earlier.outcome, NeedsDdl) else earlier
    # Both runs counted the table's events, but only one run counted what happened to those events.
    counters = msgspec.structs.replace(
        earlier.counters + report.counters,
        events=report.counters.events,
        truncated=report.counters.truncated,
        statements=report.counters.statements,
        skipped=first.counters.skipped,
        ignored=first.counters.ignored,
    )
    return msgspec.structs.replace(
        report,
        # Once a run has parked a table, it stays parked, regardless of what the next run reports.
        outcome=earlier.outcome if isinstance(earlier.outcome, Parked | Deferred) else report.outcome,
        counters=counters,
        version=earlier.version if report.version is None else report.version,
    )
