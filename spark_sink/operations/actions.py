"""The actions behind operator commands. The job runs them between batches."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from cdc_core.table_id import TableId
from spark_sink.apply.ddl_passes import DriverWork
from spark_sink.apply.driver import Applier
from spark_sink.apply.existing_tables import CHANGED_BY_OTHERS, changed_by_others, copy_refusal
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import Action, RequestAnswer
from spark_sink.errors import ConfigError, FatalError, Reason
from spark_sink.events.shared_tables import SEVERAL, owner_of
from spark_sink.metrics import Metrics
from spark_sink.operations.copies import Copies
from spark_sink.operations.erase import Erase
from spark_sink.operations.maintenance import ALL_TABLES, OWN_TABLES, Maintenance
from spark_sink.operations.rebuild import (
    RebuildTask,
    TopicAgain,
    TopicSlices,
    emptied_by_drops,
    missing_beginning,
    unaccounted,
)
from spark_sink.operations.rebuild_options import RebuildOptions, parse_options
from spark_sink.operations.registration import Registration
from spark_sink.operations.relayout import LayoutChanges, Relayout
from spark_sink.operations.reload import Reload, ShadowTables
from spark_sink.operations.resume import resume
from spark_sink.operations.sweep import sweep
from spark_sink.table_report import Done, NeedsSpark, TableCounters, TableReport
from spark_sink.tables.protocols import MirrorTable, Tables

log = structlog.get_logger()


class Actions:
    """The actions behind operator commands. Each action can be repeated after a crash. It then skips finished work.

    Args:
        limit: roughly how many parked events to replay before the next batch.
        topic: the topic from which tables are rebuilt.
        layouts: changes the layouts of tables.
        erase: erases rows.
        shadows: the tables that reloads fill.
    """

    def __init__(
        self,
        applier: Applier[Any],
        tables: Tables,
        control: ControlTables,
        metrics: Metrics,
        limit: int,
        maintenance: Maintenance,
        registration: Registration | None = None,
        topic: TopicAgain[Any] | None = None,
        layouts: LayoutChanges | None = None,
        erase: Erase | None = None,
        shadows: ShadowTables | None = None,
    ) -> None:
        self._registration = registration
        self._slices = None if topic is None else TopicSlices(applier, tables, topic)
        self._copies = None if self._slices is None else Copies(applier, tables, control, self._slices)
        self._rebuilt: dict[str, str] = {}
        self._maintenance = maintenance
        self._left: dict[str, Sequence[str]] = {}
        self._applier = applier
        self._tables = tables
        self._rules = applier.rules
        self._pattern = applier.pattern
        self._control = control
        self._metrics = metrics
        self._limit = limit
        self._replayed: Counter[str] = Counter()
        # Statements in the topic that make a rebuilt table differ from its source.
        self._unaccounted: Counter[str] = Counter()
        self._erase = erase
        self._reload: Reload | None = None
        if shadows is not None:
            self._reload = Reload(applier, tables, control, shadows, self._replay, self._changed, limit)
        self._relayout: Relayout | None = None
        if layouts is not None:
            self._relayout = Relayout(layouts, control, self._replay, self._changed)
            maintenance.leave_out(self._relayout.rewriting)

    def by_name(self) -> Mapping[str, Action]:
        return {
            "park": self.park,
            "resume": self.resume,
            "discard": self.discard,
            "rebuild": self.rebuild,
            "rebuild-into": self.rebuild_into,
            "relayout": self.relayout,
            "reload": self.reload,
            "erase": self.erase,
            "adopt": self.adopt,
            "sweep": self.sweep,
            "maintain": self.maintain,
            "register": self.register,
        }

    def park(self, target: str, argument: str | None) -> RequestAnswer:
        """Park a table. From the next batch on, its events are parked."""
        self._known(target)
        if target in self._control.held():
            return RequestAnswer("it is already parked")
        self._control.parked.park(target)
        self._changed()
        return RequestAnswer("parked")

    def resume(self, target: str, argument: str | None) -> RequestAnswer:
        """Replay the parked events. When no event is left, the table is resumed."""
        if target not in self._control.held():
            return self._not_parked(target)
        if self._control.parked.rebuild(target) is not None:
            again = f"spark-sink rebuild {shlex.quote(target)}"
            raise FatalError(f"its rebuild is not complete, so it may lack rows; continue with `{again}`")
        self._check_not_reloading(target)
        return self._replay(target)

    def _replay(self, target: str, *, accepts: bool = False) -> RequestAnswer:
        """Replay a part of the parked events.

        Args:
            accepts: whether to accept the table as it is now, even if the manifest records a different state.
        """
        self._check_sources(target)
        # Someone else changed the table, and the operator accepts its current state.
        accepts = accepts or self._control.held()[target].reason in CHANGED_BY_OTHERS
        task = self._applier.task(0)
        task = replace(task, last_seen={}) if accepts else task
        task = replace(task, rules=emptied_by_drops(task.rules)) if target in self._rebuilt else task
        resumed = resume(self._applier.runner, self._control.parked, target, task, self._applier.fulfil, self._limit)
        self._applier.discard()
        reports = resumed.reports or (self._as_it_is(target) if accepts else [])
        if reports:
            # Write the manifest before the events are removed, so that anyone who reads the manifest finds each event
            # in the table or among the parked events.
            self._control.batches.write(None, reports)
        if resumed.through is not None:
            self._control.parked.remove(target, resumed.through)
        self._changed()
        self._count_replayed(target, resumed.reports)
        result = f"{self._replayed[target]} events replayed"
        if resumed.left and resumed.refused is None:
            return RequestAnswer(result, ended=False)
        self._replayed.pop(target)
        if target not in self._rebuilt:
            self._unaccounted.pop(target, None)
        if resumed.refused is not None:
            raise FatalError(f"it stays parked: {resumed.refused}")
        return RequestAnswer(result)

    def rebuild(self, target: str, argument: str | None) -> RequestAnswer:
        """Read the topic again for one table, slice by slice, up to the table's first parked event. Then replay the
        parked events.
        """
        self._check_not_reloading(target)
        if self._slices is None:
            raise FatalError("the topic to read from does not exist")
        if target in self._rebuilt:
            return self._replay_rebuilt(target)
        options = None if argument is None else parse_options(argument)
        turn = self._control.parked.rebuild(target)
        if turn is None:
            detail = "it is being rebuilt from the topic; its events wait until the rebuild is complete"
            self._control.parked.park(target, Reason.REBUILD, detail)
            self._changed()
            turn = self._control.parked.rebuild(target)
        if options is not None:
            self._leave_out(target, options)
        # Another command for the same rebuild leaves out other records, so it starts from the beginning.
        begins, built = self._slices.begins(), str(turn) if options is None else f"{turn}-{options.id}"
        task, size = self._slices.task(target, self._control.parked.pipeline, built, len(begins))
        task = replace(
            task, owner=self._waiting_owner(target, task), without=() if options is None else options.without
        )
        done = self._slices.apply_next(task, self._ends_of(target), size)
        if done.refused is not None:
            self._rebuild_failed(target, done.refused)
        self._count_replayed(target, done.reports)
        if done.left:
            return RequestAnswer(f"{done.left} slices of the topic still have to be read", ended=False)
        return self._rebuild_read(target, turn or 0, built, begins)

    def _waiting_owner(self, target: str, task: RebuildTask) -> TableId | None:
        """Return the source table whose events wait for a missing table. The topic may also contain events of a source
        table that it belonged to before (`adopt`).

        Return None if the table exists, because it knows its source table, or if the events have different ones.
        """
        if self._tables.open(target) is not None:
            return None
        owners = {owner_of(one, task.pattern, task.rules) for one in self._control.held()[target].sources}
        return owners.pop() if len(owners) == 1 else None

    def rebuild_into(self, target: str, argument: str | None) -> RequestAnswer:
        """Read the topic again for one table, and write it under another name."""
        if self._copies is None:
            raise FatalError("the topic to read from does not exist")
        return self._copies(target, argument)

    def _leave_out(self, target: str, options: RebuildOptions) -> None:
        """Remove the parked events that the rebuild skips, because a later `resume` must not apply them."""
        for one in options.without:
            self._control.parked.leave_out(target, one.partition, one.first, one.last)
        self._changed()

    def _ends_of(self, target: str) -> Mapping[int, int]:
        """Return the offset of a table's first parked event in each partition. The rebuild stops at these offsets."""
        waiting = self._control.parked.first_waiting().get(target, {})
        reached = self._control.batches.reached()
        return {partition: min(offset, waiting.get(partition, offset)) for partition, offset in reached.items()}

    def _rebuild_read(self, target: str, turn: int, built: str, begins: Mapping[int, int]) -> RequestAnswer:
        """Finish reading the topic. The new table replaces the old one, and the parked events follow."""
        table = self._tables.open(target)
        read = self._replayed.pop(target, 0)
        is_new = table is not None and table.shape.built == built
        result = f"{read} events read from the topic{missing_beginning(target, begins)}"
        if is_new:
            # Write the manifest before the table is resumed, so that anyone who reads the manifest finds each event in
            # the table or among the parked events.
            self._control.batches.write(None, self._as_it_is(target))
        self._control.parked.end_rebuild(target, turn)
        self._changed()
        if target not in self._control.held():
            if not is_new:
                raise FatalError("the topic contains no events for this table, so the table is unchanged")
            return RequestAnswer(result + self._told_unaccounted(target))
        self._rebuilt[target] = result
        return self._replay_rebuilt(target)

    def _replay_rebuilt(self, target: str) -> RequestAnswer:
        result = self._rebuilt[target]
        try:
            answer = RequestAnswer("none waits")
            if target in self._control.held():
                answer = self._replay(target, accepts=True)
        except FatalError as error:
            del self._rebuilt[target]
            raise FatalError(f"{result}. The table has been rebuilt, but {error}") from None
        if answer.ended:
            del self._rebuilt[target]
        told = self._told_unaccounted(target) if answer.ended else ""
        return RequestAnswer(f"{result}; {answer.result}{told}", ended=answer.ended)

    def _told_unaccounted(self, target: str) -> str:
        return unaccounted(self._unaccounted.pop(target, 0))

    def _count_replayed(self, target: str, reports: Sequence[TableReport]) -> None:
        self._replayed[target] += sum(report.counters.events for report in reports)
        self._unaccounted[target] += sum(sum(report.counters.statements.values()) for report in reports)

    def _rebuild_failed(self, target: str, why: str) -> None:
        """Keep the table parked with the reason, but in another turn, so that the next rebuild starts from the
        beginning.
        """
        turn = self._control.parked.rebuild(target)
        self._control.parked.park(target, Reason.REBUILD, f"its rebuild failed: {why}")
        if turn is not None:
            self._control.parked.end_rebuild(target, turn)
        self._replayed.pop(target, None)
        self._changed()
        raise FatalError(f"it stays parked and is incomplete: {why}")

    def relayout(self, target: str, argument: str | None) -> RequestAnswer:
        """Rewrite a table's files in the configured layout, while other tables continue."""
        if self._relayout is None:
            raise FatalError("Spark has to rewrite the table, but it is not running")
        self._known(target)
        return self._relayout(target, argument)

    def reload(self, target: str, argument: str | None) -> RequestAnswer:
        """Begin, end or cancel a reload, which replaces a table's rows in one commit."""
        if self._reload is None:
            raise FatalError("Spark has to reload the table, but it is not running")
        self._known(target)
        return self._reload(target, argument)

    def _check_not_reloading(self, target: str) -> None:
        if self._control.parked.reload(target) is not None:
            command = f"spark-sink reload {shlex.quote(target)}"
            raise FatalError(f"it is being reloaded; run `{command} end` or `{command} cancel` first")

    def erase(self, target: str, argument: str | None) -> RequestAnswer:
        """Erase the row whose key has this digest."""
        if self._erase is None:
            raise FatalError("Spark has to erase the row, but it is not running")
        if self._relayout is not None and target in self._relayout.rewriting():
            raise FatalError("its files are being rewritten; run the command again afterwards")
        answer = self._erase(target, argument)
        self._control.batches.write(None, self._as_it_is(target))
        self._changed()
        return answer

    def adopt(self, target: str, argument: str | None) -> RequestAnswer:
        """Assign a table to another source table. From then on, that table's events change the rows."""
        self._check_not_reloading(target)
        source = parse_source(argument or "")
        table = self._tables.open(target)
        if table is None:
            raise FatalError(f"table {target!r} does not exist")
        before = table.shape.table
        if before == source:
            return RequestAnswer(f"it already belongs to {source}")
        if before.source == SEVERAL or self._rules.shares(target, str(source)):
            raise FatalError("several source tables share it; add the new one to its patterns in tables.shared instead")
        if self._rules.excludes(source):
            raise FatalError(f"tables.exclude excludes {source}; remove it there and restart the sink")
        named = self._pattern.target(source)
        if named.lower() != target.lower():
            raise FatalError(
                f"events of {source} go to {named}; give {source} the name {target} in tables.rename and restart "
                "the sink"
            )
        self._applier.give(target, source)
        log.info("table adopted", table=target, source=str(source), before=str(before))
        waiting = " Its events are waiting; resume it under that name." if str(source) in self._control.held() else ""
        return RequestAnswer(f"it belonged to {before} and now belongs to {source}.{waiting}")

    def _as_it_is(self, target: str) -> list[TableReport]:
        table = self._tables.open(target)
        return [] if table is None else [TableReport(target, target, 0, Done(), TableCounters(), version=table.version)]

    def park_changed(self) -> None:
        """Park the tables that were rolled back to a state older than the one in the manifest. This runs before the
        first batch.

        A removed table is parked only when an event would create it again, because it may no longer have a source.
        """
        seen, held = self._control.batches.last_seen(), self._control.held()
        for name, refusal in changed_by_others(seen, held, self._tables.open).items():
            if refusal.reason is Reason.TABLE_GONE:
                log.warning("table no longer exists", table=name, reason=str(refusal))
                continue
            self._control.parked.park(name, refusal.reason, str(refusal))
            log.error("table parked", table=name, reason=str(refusal), events=0)
            self._changed()

    def _check_sources(self, target: str) -> None:
        """Raise an error unless the configuration still allows the tables that the parked events belong to."""
        for source in self._control.held()[target].sources:
            if self._rules.excludes(source):
                raise FatalError(
                    f"events of {source} are parked, but tables.exclude excludes it. Discard them with `spark-sink "
                    f"discard {shlex.quote(target)}`, or remove the table from tables.exclude and restart the sink"
                )
            name = self._pattern.target(source)
            if name != target and name in self._control.held():
                raise FatalError(f"events of {source} go to {name}, which is also parked; resume that table first")

    def discard(self, target: str, argument: str | None) -> RequestAnswer:
        """Discard the parked events from excluded source tables."""
        cause = self._control.held().get(target)
        if cause is None:
            return self._not_parked(target)
        excluded = [source for source in cause.sources if self._rules.excludes(source)]
        if not excluded:
            result = ", ".join(map(str, cause.sources)) or "none is known"
            raise FatalError(
                f"tables.exclude excludes none of its source tables ({result}); other events cannot be discarded"
            )
        self._control.parked.discard(target, excluded)
        self._changed()
        left = self._control.held().get(target)
        return RequestAnswer(f"{cause.events - (left.events if left is not None else 0)} events discarded")

    def sweep(self, target: str, argument: str | None) -> RequestAnswer:
        """Delete the rows that a reload did not contain."""
        table = self._tables.open(target)
        if table is None:
            raise FatalError(f"table {target!r} does not exist")
        if target in self._control.held():
            raise FatalError(f"{target} is parked, and events for it may be waiting; resume it first")
        if table.shape.is_copy:
            raise FatalError(copy_refusal(target))
        if not isinstance(table, MirrorTable):
            raise FatalError(f"{target} has mode {table.shape.mode}, but only mirrors can be swept")
        soft, as_of = self._rules.soft_deletes, lambda moment: self._tables.as_of(target, moment)
        count = sweep(table, argument or "", as_of, soft=soft)
        outcome = NeedsSpark(tuple(table.orders)) if table.orders else Done()
        reports = [TableReport(target, target, 0, outcome, TableCounters(), version=table.version)]
        if work := DriverWork.of(reports):
            done = self._applier.fulfil(work, reports)
            self._applier.discard()
            if target in done.refused:
                raise FatalError(f"the table {target} rejected the sweep: {done.refused[target]}")
            reports = done.reports
        self._control.batches.write(None, reports)
        return RequestAnswer(f"{count} rows deleted")

    def maintain(self, target: str, argument: str | None) -> RequestAnswer:
        """Maintain the files in one table or in all tables. If there are many tables, this takes several rounds."""
        if target != ALL_TABLES and target not in OWN_TABLES:
            self._known(target)
        names = self._left.get(target) or (self._maintenance.tables() if target == ALL_TABLES else [target])
        done, left = self._maintenance.by_hand(names)
        self._left[target] = left
        if left:
            return RequestAnswer(f"{len(left)} tables remain", ended=False)
        return RequestAnswer(", ".join(f"{one.step} {one.table}" for one in done) or "nothing to do")

    def register(self, target: str, argument: str | None) -> RequestAnswer:
        """Register one table or all tables in the catalog."""
        if self._registration is None:
            raise FatalError("the configuration has no catalog, so no table is registered and no view is kept")
        if target != ALL_TABLES:
            self._known(target)
        names = self._control.batches.tables() if target == ALL_TABLES else {target}
        new, refused = self._registration.by_hand(names)
        if refused:
            raise FatalError("; ".join(f"{name}: {why}" for name, why in refused.items()))
        return RequestAnswer(f"{len(new)} registered, {len(names) - len(new)} already known")

    def _changed(self) -> None:
        self._control.changed()
        self._metrics.parked(self._control.held())

    def _not_parked(self, target: str) -> RequestAnswer:
        if not _is_source(target):
            self._known(target)
        return RequestAnswer("it is not parked")

    def _known(self, target: str) -> None:
        if target in self._control.held() or target in self._control.batches.tables():
            return  # also if it is damaged
        if _is_source(target) or self._tables.open(target) is None:
            raise FatalError(f"table {target!r} does not exist")


def parse_source(text: str) -> TableId:
    """Parse a source table written as `source/db/schema/table`. If a source does not have a level, that level is empty.

    Raises:
        ConfigError: the text has another format.
    """
    source, *levels = text.split("/")
    if not source or len(levels) != 3 or not levels[2]:
        raise ConfigError(f"{text!r} is not a source table; expected source/db/schema/table, such as erp/shop//orders")
    db, schema, table = levels
    return TableId(source, db or None, schema or None, table)


def _is_source(name: str) -> bool:
    """Return whether this is a source table's name. If another table has the lakehouse name, events are parked under
    the source table's name.
    """
    return "/" in name
