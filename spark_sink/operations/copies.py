"""Rebuild a table under another name. The table itself and its parked events are not involved."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from cdc_core.table_id import TableId
from spark_sink.apply.driver import Applier
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import RequestAnswer
from spark_sink.errors import FatalError
from spark_sink.operations.rebuild import TopicSlices, missing_beginning, unaccounted
from spark_sink.operations.rebuild_options import parse_options
from spark_sink.schema.evolution import COPY
from spark_sink.schema.table_naming import plain_name
from spark_sink.tables.protocols import Tables


class Copies:
    """Writes copies of tables from the topic, slice by slice.

    Args:
        slices: applies the topic's slices.
    """

    def __init__(self, applier: Applier[Any], tables: Tables, control: ControlTables, slices: TopicSlices) -> None:
        self._applier = applier
        self._tables = tables
        self._control = control
        self._slices = slices
        # The events and the statements without events that this process has read, by copy.
        self._read: Counter[str] = Counter()
        self._unaccounted: Counter[str] = Counter()

    def __call__(self, target: str, argument: str | None) -> RequestAnswer:
        """Read the next slice into a copy.

        Args:
            target: the copy's name.
            argument: see `RebuildOptions`.
        """
        options = parse_options(argument or "")
        built, owner = f"{COPY}{options.id}", self._owner(options.table)
        self._check_name(target, options.table, owner)
        task, size = self._slices.task(options.table, self._control.parked.pipeline, built, len(options.ends))
        rules = as_table(task.rules, options.table, target)
        self._inherit(target, options.table)
        erased = self._control.erased_keys()
        task = replace(task, into=target, owner=owner, without=options.without, rules=rules, erased=erased)
        done = self._slices.apply_next(task, options.ends, size)
        if done.refused is not None:
            raise FatalError(f"{target} is incomplete: {done.refused}")
        self._read[built] += sum(report.counters.events for report in done.reports)
        self._unaccounted[built] += sum(sum(report.counters.statements.values()) for report in done.reports)
        if done.left:
            return RequestAnswer(f"{done.left} slices of the topic still have to be read", ended=False)
        read, statements = self._read.pop(built), self._unaccounted.pop(built)
        written = self._tables.open(target)
        if written is None or written.shape.built != built:
            raise FatalError(f"the topic contains no such events for {options.table}, so {target} was not written")
        late = missing_beginning(target, self._slices.begins())
        return RequestAnswer(f"{read} events read from the topic{late}{unaccounted(statements)}")

    def _inherit(self, target: str, name: str) -> None:
        """Record that the rows erased from the table are also erased from the copy, because it may become a live
        table.
        """
        erased, topic = self._control.erased_keys(), self._control.batches.topic()
        for key, offsets in erased.get(name, {}).items():
            known = erased.get(target, {}).get(key, {})
            if any(offset > known.get(partition, 0) for partition, offset in offsets.items()):
                self._control.erased.add(target, key, topic, offsets)

    def _owner(self, name: str) -> TableId:
        table = self._tables.open(name)
        if table is None:
            raise FatalError(f"table {name!r} does not exist; to restore it from the topic, rebuild it without --into")
        return table.shape.table

    def _check_name(self, target: str, name: str, owner: TableId) -> None:
        """Raise an error if the copy would replace anything other than an earlier copy.

        Raises:
            FatalError: another table has the name, or contains its folder.
        """
        try:
            plain_name(target)
        except ValueError as error:
            raise FatalError(f"{target!r} cannot be the name of a copy: {error}") from None
        parts = target.split(".")
        for outer in (".".join(parts[:count]) for count in range(1, len(parts))):
            # Deleting unknown files in the outer table's folder, as VACUUM does, would delete the copy.
            if self._tables.spelled(outer) is not None:
                raise FatalError(f"{target} would be stored in the folder of the table {outer}; choose another name")
        taken = self._tables.spelled(target)
        if taken is None:
            if self._tables.contains_others(target):
                raise FatalError(f"the folder of {target} contains other tables; choose another name")
            return
        found = self._tables.open(taken) if taken == target else None
        if found is None or not found.shape.is_copy or found.shape.table != owner:
            raise FatalError(f"{taken} is not an earlier copy of {name}; choose another name, or remove that table")


def as_table(rules: TableRules, table: str, name: str) -> TableRules:
    """Return the rules, applying the table's mode and key to another name as well."""
    form = rules.form(table)
    return replace(rules, modes={**rules.modes, name: form.mode}, keys={**rules.keys, name: form.key})
