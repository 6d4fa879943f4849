"""A batch takes further runs of the task where the driver has to do something in between: what that is, and the
reports of all runs together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from spark_sink.errors import ConfigError, FatalError
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
    """The work that a run of the task leaves to the driver.

    Args:
        steps: changes of structure, each with its table; `orders` of rows by table.
        carried: routes whose records must travel.
        again: routes that have more to do afterwards.
    """

    steps: list[tuple[str, Step]] = field(default_factory=list)
    orders: dict[str, Sequence[Order]] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, reports: Iterable[TableReport]) -> DriverWork:
        """Sort the reports of a run by what is to be done.

        Raises:
            ConfigError: tables contradict the configuration; all of them are named.
        """
        work, conflicts = cls(), []
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
                    conflicts.append(message)
                case _:
                    assert_never(report.outcome)
        if conflicts:
            raise ConfigError("; ".join(sorted(conflicts)))
        return work

    def __bool__(self) -> bool:
        return bool(self.steps or self.orders or self.carried)


class SeenRequests:
    """Remembers the requests of tables in a batch: a table that repeats one would do so without end."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def add(self, reports: Iterable[TableReport]) -> None:
        """Note what the reports ask for.

        Raises:
            FatalError: it was asked for before, and done.
        """
        for report in reports:
            if not isinstance(report.outcome, Unfinished):
                continue
            request = msgspec.msgpack.encode((report.route, report.table, report.outcome), order="deterministic")
            if request in self._seen:
                raise FatalError(f"the table {report.table} asks for the same change again after it was made")
            self._seen.add(request)


def merge_reports(runs: Sequence[Sequence[TableReport]]) -> list[TableReport]:
    """One report per table: as its last run left it, with what the earlier ones did.

    What a run skips because an earlier one of this batch did it is no replay.
    """
    tables: dict[tuple[str, str], TableReport] = {}
    for reports in runs:
        for report in reports:
            key = report.route, report.source or report.table
            earlier = tables.get(key)
            tables[key] = report if earlier is None else _after(earlier, report)
    return list(tables.values())


_ADDED = ("commits", "rows", "deleted", "late", "scope_changes", "fold_ms", "write_ms")


def _after(earlier: TableReport, report: TableReport) -> TableReport:
    # A task that was to change its table first has done nothing yet: what it skips then was done by another start.
    first = report if isinstance(earlier.outcome, NeedsDdl) else earlier
    one, two = earlier.counters, report.counters
    counters = msgspec.structs.replace(
        two,
        **{name: getattr(one, name) + getattr(two, name) for name in _ADDED},
        skipped=first.counters.skipped,
        stale=dict(Counter(one.stale) + Counter(two.stale)),
        rejected=dict(Counter(one.rejected) + Counter(two.rejected)),
        ignored=first.counters.ignored,
        latency=one.latency + two.latency,
        megabytes=max(one.megabytes, two.megabytes),
    )
    return msgspec.structs.replace(
        report,
        # A table that one run has parked stays so, however the next one meets it.
        outcome=earlier.outcome if isinstance(earlier.outcome, Parked | Deferred) else report.outcome,
        counters=counters,
        version=earlier.version if report.version is None else report.version,
    )
