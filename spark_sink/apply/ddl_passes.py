"""A batch takes further runs of the task where the driver has to do something in between: their reports together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from spark_sink.errors import FatalError
from spark_sink.table_report import TableReport


class Asked:
    """What tables have asked of the driver in a batch: each thing once, or it would go on for ever."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def take(self, reports: Iterable[TableReport]) -> None:
        """Note what the reports ask for.

        Raises:
            FatalError: it was asked for before, and done.
        """
        for report in reports:
            wanted = (report.step, report.wants_records, report.orders)
            asked = msgspec.msgpack.encode((report.route, report.table, *wanted), order="deterministic")
            if asked in self._known:
                raise FatalError(f"the table {report.table} asks for the same change again after it was made")
            self._known.add(asked)


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
    added = {name: getattr(earlier, name) + getattr(report, name) for name in _ADDED}
    return msgspec.structs.replace(
        report,
        **added,
        skipped=report.skipped if earlier.step is not None else earlier.skipped,
        stale=dict(Counter(earlier.stale) + Counter(report.stale)),
        rejected=dict(Counter(earlier.rejected) + Counter(report.rejected)),
        ignored=report.ignored if earlier.step is not None else earlier.ignored,
        refused=report.refused or earlier.refused,
        parked=max(earlier.parked, report.parked),
        version=earlier.version if report.version is None else report.version,
        latency=earlier.latency + report.latency,
        megabytes=max(earlier.megabytes, report.megabytes),
    )
