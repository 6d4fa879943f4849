"""Maintain table files between batches, in runs with a time limit.

A table is due once after each start, and whenever it has `small_files` new commits.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, assert_never

import structlog

from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables import maintenance as maintenance_table
from spark_sink.control_tables import requests, verified
from spark_sink.control_tables.batches import BATCHES, ControlTables
from spark_sink.control_tables.maintenance import StepDone
from spark_sink.errors import FatalError
from spark_sink.events import parking, quarantine
from spark_sink.metrics import Metrics
from spark_sink.table_report import TableReport
from spark_sink.tables.maintenance import MaintenanceError, TableFiles, TableMaintenance

log = structlog.get_logger()

# Files are merged up to this size, and later up to the table's target size, so that large files are not rewritten for
# every few small files. A file counts as small if it is smaller than an eighth of the target size.
FIRST_TARGET = 16 << 20
_SMALL = 8

# The maximum number of commits since the last checkpoint that a reader must read to open a table.
UNSAVED = 50

_DAY = 86_400.0

# The time for which the log remembers a removed file after the file is no longer kept. A sink that is stopped for less
# than this time leaves no files behind.
_MARGIN_DAYS = 14

OWN_TABLES = (BATCHES, parking.NAME, requests.NAME, quarantine.NAME, maintenance_table.NAME, verified.NAME)


ALL_TABLES = "*"
"""The name with which an operator's command refers to all tables."""


class Step(StrEnum):
    """The steps that a table may need, in the order in which they run."""

    EXPIRE = "expire"
    """Delete rows from the sink's own tables that nothing needs any more."""
    COMPACT = "compact"
    CHECKPOINT = "checkpoint"
    REMEMBER = "remember"
    """Set how long the log of the table remembers removed files."""
    VACUUM = "vacuum"


class DueStep(NamedTuple):
    """A step that is due, with the reason. `target_bytes` is set for a compaction."""

    step: Step
    why: str
    target_bytes: int = 0


class HandDone(NamedTuple):
    """The steps that were done at an operator's request, and the number of remaining tables."""

    done: Sequence[StepDone]
    left: Sequence[str]


def by_hand(rules: MaintenanceRules) -> MaintenanceRules:
    """Return the rules for an operator's request, which merge even two small files."""
    return replace(rules, small_files=2)


def due(files: TableFiles, rules: MaintenanceRules, vacuumed: float | None, now: float) -> list[DueStep]:
    """Return the steps that a table's files need. If a table has a feature that maintenance does not support, it needs
    no steps.

    Args:
        vacuumed: the time of the last vacuum, in seconds like `now`, or None. The next vacuum is due a day later. If
            the last one is None, it is due immediately.
    """
    if files.foreign:
        return []
    found: list[DueStep] = []
    for target in sorted({min(FIRST_TARGET, files.target_bytes), files.target_bytes}):
        small = [number for number, size in enumerate(files.sizes) if size < target // _SMALL]
        by_partition = Counter(files.partitions[number] if files.partitions else "" for number in small)
        if max(by_partition.values(), default=0) >= rules.small_files:
            why = f"{len(small)} of {len(files.sizes)} files are smaller than {target // _SMALL >> 20} MiB"
            found.append(DueStep(Step.COMPACT, why, target))
            break
    if files.unsaved >= UNSAVED:
        found.append(DueStep(Step.CHECKPOINT, f"{files.unsaved} commits since the last checkpoint of the log"))
    if files.remembered_days < rules.keep_days + _MARGIN_DAYS:
        why = f"the log keeps removed files for {files.remembered_days:g} days"
        found.append(DueStep(Step.REMEMBER, why))
    if vacuumed is None or now - vacuumed >= _DAY:
        found.append(DueStep(Step.VACUUM, "not done yet" if vacuumed is None else "a day has passed"))
    return found


class Maintenance:
    """Maintains a pipeline's tables. The caller holds the lock for writing tables.

    Args:
        clock: returns the time in seconds since 1970.
    """

    def __init__(
        self,
        tables: TableMaintenance,
        control: ControlTables,
        rules: MaintenanceRules,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tables = tables
        self._control = control
        self._rules = rules
        self._metrics = metrics
        self._clock = clock
        self._commits: Counter[str] = Counter()
        # The dictionary keeps the tables in order, so the table that has waited longest is next.
        self._waiting: dict[str, None] | None = None
        self._done: dict[Step, dict[str, float]] = {}
        self._left_to_others: set[str] = set()
        self._turn_at = time.monotonic() + rules.every_seconds
        self._left_out: Callable[[], Collection[str]] = tuple
        self._expiries: Mapping[str, Callable[[float], int]] = {
            BATCHES: lambda now: control.batches.fold_before(now - rules.keep_days * _DAY),
            requests.NAME: lambda now: control.requests.forget_before(now - rules.commands_days * _DAY),
            maintenance_table.NAME: lambda now: control.maintenance.forget_before(now - rules.commands_days * _DAY),
            verified.NAME: lambda now: control.verified.forget_before(now - rules.commands_days * _DAY),
        }

    def applied(self, reports: Iterable[TableReport]) -> None:
        """Record a batch that has ended."""
        self._commits[BATCHES] += 1
        for report in reports:
            self._commits[report.table] += report.counters.commits
            self._commits[quarantine.NAME] += bool(report.counters.rejected)
            self._commits[parking.NAME] += bool(report.parked)

    def leave_out(self, names: Callable[[], Collection[str]]) -> None:
        """Skip these tables, because something else is writing them. `names` is called in each run."""
        self._left_out = names

    def is_due(self) -> bool:
        """Return whether a run would check any table."""
        return time.monotonic() >= self._turn_at and bool(self._queue())

    def turn(self) -> None:
        """Maintain tables until no table is due or the budget is used up. Once a step has begun, it is always
        finished.
        """
        self._take(self._queue(), self._rules)
        self._turn_at = time.monotonic() + self._rules.every_seconds

    def by_hand(self, names: Iterable[str]) -> HandDone:
        """Run every step that reduces the number of files in these tables, within one run's budget."""
        queue = dict.fromkeys(names)
        done = self._take(queue, by_hand(self._rules))
        return HandDone(done, list(queue))

    def planned(self, names: Iterable[str]) -> Iterator[tuple[str, DueStep]]:
        """Return the steps that `by_hand` would run for these tables without a budget.

        Raises:
            FatalError: a table's files cannot be listed.
        """
        try:
            yield from ((name, step) for name in names for step in self._due(name, by_hand(self._rules)))
        except MaintenanceError as error:
            raise FatalError(str(error)) from None

    def tables(self) -> list[str]:
        """Return all tables to maintain."""
        written = sorted(self._control.batches.tables()) if self._rules.enabled else []
        return [*OWN_TABLES, *written]

    def _queue(self) -> dict[str, None]:
        if self._waiting is None:
            self._waiting = dict.fromkeys(self.tables())
        for name, commits in list(self._commits.items()):
            if commits >= self._rules.small_files:
                del self._commits[name]
                if self._rules.enabled or name in OWN_TABLES:
                    self._waiting[name] = None
        return self._waiting

    def _take(self, queue: dict[str, None], rules: MaintenanceRules) -> list[StepDone]:
        done: list[StepDone] = []
        ends = time.monotonic() + rules.budget_seconds
        begun = False
        while queue and (not begun or time.monotonic() < ends):
            begun = True
            name = next(iter(queue))
            del queue[name]
            if name in self._left_out():
                continue
            try:
                # Record each step immediately, because the earlier steps are already done if a later step fails.
                done.extend(self._do(name, step) for step in self._due(name, rules))
            except MaintenanceError as error:
                # The table is unchanged, and will be checked again after more commits.
                self._metrics.maintenance_failed()
                log.warning("table maintenance failed, will retry", table=name, reason=str(error))
        if done:
            self._control.maintenance.write(done)
        return done

    def _due(self, name: str, rules: MaintenanceRules) -> Sequence[DueStep]:
        now = self._clock()
        files = self._tables.files(name)
        if files is None:
            return ()
        if files.foreign and name not in self._left_to_others:
            self._left_to_others.add(name)
            log.info("table uses features that the sink cannot maintain", table=name, features=list(files.foreign))
        expired = self._last_done(Step.EXPIRE).get(name)
        # A new table has no old files, so the first vacuum is delayed, unless an operator requests it.
        since = files.created if rules is self._rules else None
        steps = due(files, rules, self._last_done(Step.VACUUM).get(name, since), now)
        if name in self._expiries and (expired is None or now - expired >= _DAY):
            return [DueStep(Step.EXPIRE, "a day has passed"), *steps]
        return steps

    def _last_done(self, step: Step) -> dict[str, float]:
        if step not in self._done:
            self._done[step] = dict(self._control.maintenance.last(step.value))
        return self._done[step]

    def _do(self, name: str, due: DueStep) -> StepDone:
        started = time.perf_counter()
        removed, added = self._carry_out(name, due)
        seconds = time.perf_counter() - started
        self._last_done(due.step)[name] = self._clock()
        self._metrics.maintained(due.step.value, seconds)
        fields = {"table": name, "step": due.step.value, "removed": removed, "added": added}
        log.info("table maintained", **fields, why=due.why, ms=round(seconds * 1000))
        return StepDone(name, due.step.value, removed, added)

    def _carry_out(self, name: str, due: DueStep) -> tuple[int, int]:
        match due.step:
            case Step.EXPIRE:
                return self._expiries[name](self._clock()), 0
            case Step.COMPACT:
                return self._tables.compact(name, due.target_bytes)
            case Step.CHECKPOINT:
                self._tables.checkpoint(name)
            case Step.REMEMBER:
                self._tables.remember(name, self._rules.keep_days + _MARGIN_DAYS)
            case Step.VACUUM:
                return self._tables.vacuum(name, self._rules.keep_days), 0
            case _:
                assert_never(due.step)
        return 0, 0
