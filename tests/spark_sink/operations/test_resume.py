"""Parked tables in Delta Lake: waiting events, replay, and the answers of commands."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import State
from spark_sink.tables.delta.control_tables import ParkedTables
from tests.spark_sink.changes import OTHER_SCOPE, SCOPE, change, folding, schema_of
from tests.spark_sink.lake import Lake
from tests.spark_sink.oracle import table_after

ORDERS, CUSTOMERS = "shop_sales.orders", "shop_sales.customers"
ALL_SCOPES = TableRules(all_scopes=True)
BROKEN = int(os.environ.get("BROKEN", "5"))


def _truncated_by_one_of_two(first: int = 0) -> list[ChangeEvent]:
    """Return events of which the third stops the table."""
    return [
        change("c", {"id": 1}, {"a": "x"}, pos=first + 1),
        change("c", {"id": 2}, {"a": "x"}, pos=1, scope=OTHER_SCOPE),
        change("t", None, pos=first + 2),
        change("c", {"id": 3}, {"a": "x"}, pos=first + 3),
    ]


def _batches(count: int) -> list[list[ChangeEvent]]:
    """Return the inserts, updates, key changes and deletes of one table. The second batch cannot be applied."""
    chance = random.Random(20)
    live: set[int] = set()
    batches = []
    pos = 10
    for batch in range(count):
        events = []
        if batch == 1:
            events.append(change("c", {"id": 999}, {"a": "other"}, pos=1, scope=OTHER_SCOPE))
            events.append(change("t", None, pos=pos))
            live = set()
        for _ in range(chance.randint(1, 12)):
            pos += 1
            id = chance.randint(0, 9)
            image = {"a": f"a{pos}", "b": None}
            if id not in live:
                events.append(change("c", {"id": id}, {**image, "c": "c"}, pos=pos))
                live.add(id)
            elif chance.random() < 0.3:
                events.append(change("d", {"id": id}, pos=pos))
                live.remove(id)
            else:
                events.append(change("u", {"id": id}, image, pos=pos, full=False))
        batches.append(events)
    return batches


def test_a_table_is_broken_for_long(lake_of_format: Lake, tmp_path: Path) -> None:
    """C20: one table is parked for many batches while others continue. After its cause is fixed, it is replayed slice
    by slice, with restarts and new batches in between, and equals the oracle.

    `BROKEN=360` in the environment runs the batches of an hour and prints their duration.
    """
    lake = lake_of_format
    lake.announce(schema_of({"id": "int64", "a": "string", "b": "string", "c": "string"}))
    batches = _batches(BROKEN + 4)

    def apply(number: int) -> float:
        started = time.perf_counter()
        reports = lake.apply(number, [*batches[number], _customer(number)])
        seconds = time.perf_counter() - started
        assert 1 == next(report.counters.commits for report in reports if report.table == CUSTOMERS)
        return seconds

    if "BROKEN" in os.environ:
        _print_pace(apply, lake.beside(tmp_path / "beside"))
    else:
        for number in range(BROKEN + 1):
            apply(number)
    before, waiting = lake.commit_markers(ORDERS), len(lake.parked())
    assert sum(map(len, batches[1 : BROKEN + 1])) - 1 == waiting
    lake.use(ALL_SCOPES)
    lake.control.requests.ask("resume", ORDERS)
    limit = max(20, waiting // 4)
    requests = lake.requests(limit)
    assert requests.run()
    apply(BROKEN + 1)
    requests = lake.requests(limit)  # the process ended here, and another continues
    assert requests.run()
    apply(BROKEN + 2)
    while requests.run():
        pass
    apply(BROKEN + 3)
    (request,) = lake.control.requests.requests()
    assert (State.DONE, [], {}) == (request.state, lake.parked(), lake.control.held())
    rows, _ = table_after([folding(event) for batch in batches for event in batch])
    assert rows == {row["id"]: row for row in lake.rows()}
    assert len(batches) == len(lake.rows(CUSTOMERS))
    assert [] == lake.quarantine()
    after = lake.commit_markers(ORDERS)
    assert after[: len(before)] == before != after
    assert len(set(after)) == len(after)


def _customer(number: int) -> ChangeEvent:
    return change("c", {"id": str(number)}, {}, pos=number, table="customers")


def _print_pace(apply: Callable[[int], float], beside: Lake) -> None:
    """Apply all batches, and print the durations in the first and the last tenth. Both alternate with batches of a
    young lake without parked tables, because the load of the machine changes.
    """
    tenth = BROKEN // 10
    tenths = {"first": range(1, tenth + 1), "last": range(BROKEN - tenth + 1, BROKEN + 1)}
    taken: dict[str, list[float]] = {}
    for number in range(BROKEN + 1):
        seconds = apply(number)
        for name, numbers in tenths.items():
            if number in numbers:
                taken.setdefault(f"{name} tenth", []).append(seconds)
                started = time.perf_counter()
                beside.apply(number, [_customer(number)])
                taken.setdefault(f"{name} tenth, beside", []).append(time.perf_counter() - started)
    for name, each in taken.items():
        print(f"{name}: median of {len(each)} batches {1000 * median(each):.0f} ms")


def test_the_cause_still_stands(lake: Lake) -> None:
    """A resume that hits the cause again reports it and changes nothing. It can be repeated, and two count as one."""
    lake.apply(0, _truncated_by_one_of_two())
    before = lake.version(ORDERS)
    for _ in range(2):
        failed = lake.command("resume")
        assert State.FAILED == failed.state
        assert "one scope was truncated" in (failed.error or "")
        assert ([("TRUNCATE_SCOPES", 2), ("TRUNCATE_SCOPES", 3)], before) == (lake.parked(), lake.version(ORDERS))
    lake.use(ALL_SCOPES)
    for told in ("2 events replayed", "it is not parked"):
        done = lake.command("resume")
        assert (State.DONE, told) == (done.state, done.result)
    assert ([{"id": "3", "a": "x"}], []) == (lake.rows(), lake.parked())


def test_killed_after_the_replay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that was replayed but not yet removed when the process died is removed without being applied again."""
    events = _truncated_by_one_of_two()
    lake.apply(0, [*events, change("c", {"id": None}, {}, pos=9)])
    lake.use(ALL_SCOPES)
    with monkeypatch.context() as killed:
        killed.setattr(ParkedTables, "remove", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lake.command("resume")
    before = lake.version(ORDERS)
    lake.use(ALL_SCOPES)
    lake.requests().run()
    assert ([{"id": "3", "a": "x"}], [], before) == (lake.rows(), lake.parked(), lake.version(ORDERS))
    assert ["KEY_UNKNOWN"] == [reason for reason, _, _ in lake.quarantine()]
    lake.apply(1, [change("c", {"id": 4}, {"a": "x"}, pos=10)])
    assert 2 == len(lake.rows())


def test_parked_by_command(each_lake: Lake) -> None:
    """A table parked by the operator keeps its rows and applies nothing, not even new columns, until it is resumed."""
    each_lake.apply(0, [change("c", {"id": 1}, {}, pos=1)])
    assert ["parked", "it is already parked"] == [each_lake.command("park").result for _ in range(2)]
    each_lake.use(TableRules())  # a restart
    before = each_lake.version(ORDERS)
    each_lake.apply(1, [change("c", {"id": 2}, {"a": "x"}, pos=2), change("c", {"id": 3}, {"b": "y"}, pos=3)])
    each_lake.apply(2, [change("d", {"id": 1}, pos=4)])
    assert before == each_lake.version(ORDERS)
    assert State.DONE == each_lake.command("resume").state
    assert [{"id": "2", "a": "x", "b": None}, {"id": "3", "a": None, "b": "y"}] == each_lake.rows()


def test_a_later_turn_cannot_be_replayed(lake: Lake) -> None:
    """The turns replayed before it are in the table, no longer wait, and are in the manifest."""
    lake.use(TableRules(park_rejected=0))
    lake.apply(0, [change("c", {"id": 1}, {}, pos=1)])
    lake.command("park")
    lake.apply(1, [change("c", {"id": 2}, {}, pos=2)])
    lake.apply(2, [change("c", {"id": None}, {}, pos=3), change("c", {"id": 3}, {}, pos=4)])
    assert "its events in one batch could not be applied" in (lake.command("resume").error or "")
    assert (["1", "2"], 2) == ([row["id"] for row in lake.rows()], len(lake.parked()))
    (told,) = (row for row in lake.control.batches.rows() if row.batch is None)
    assert {ORDERS: lake.version(ORDERS)} == told.versions


def test_commands_that_cannot_be(lake: Lake) -> None:
    """The answer to an unknown command or table is an error that names it."""
    for command, table, error in (
        ("resum", ORDERS, "unknown command 'resum' (did you mean resume?)"),
        ("resume", "shop_sales.ordres", "table 'shop_sales.ordres' does not exist"),
        ("park", "../../orders", "table '../../orders' does not exist"),
    ):
        answer = lake.command(command, table)
        assert State.FAILED == answer.state
        assert error in (answer.error or "")


def test_a_lost_checkpoint_keeps_the_order(lake_of_format: Lake) -> None:
    """Events that a new checkpoint, with new batch numbers, adds to a parked table wait behind the existing ones."""
    lake = lake_of_format
    lake.apply(7, [change("c", {"id": 1}, {"a": "x"}, pos=1, scope=SCOPE)])
    lake.command("park")
    lake.apply(8, [change("u", {"id": 1}, {"a": "y"}, pos=2)])
    lake.applier = lake.new_applier("checkpoint-2")
    lake.apply(0, [change("u", {"id": 1}, {"a": "z"}, pos=1, scope=OTHER_SCOPE)])
    lake.command("resume")
    assert [{"id": "1", "a": "z"}] == lake.rows()


def test_sweep_after_a_reload(each_lake_of_format: Lake) -> None:
    """Rows not written since a given time are deleted and remembered: earlier events do not restore them, later ones
    do. A parked table is not swept.
    """
    lake = each_lake_of_format
    first = [change("c", {"id": n}, {"a": "old"}, pos=n) for n in (1, 2, 4)]
    lake.apply(0, [*first, change("c", {"id": 3}, {"a": "old"}, pos=1, scope=OTHER_SCOPE)])
    loaded = datetime.now(UTC)
    lake.apply(1, [change("r", {"id": 1}, {"a": "new"}, pos=10)])
    beginning = (loaded - timedelta(days=1)).isoformat()
    told = [lake.command("sweep", argument=before).result for before in (beginning, loaded.isoformat()) for _ in "ab"]
    assert ["0 rows deleted", "0 rows deleted", "3 rows deleted", "0 rows deleted"] == told
    assert [{"id": "1", "a": "new"}] == lake.rows()
    lake.apply(2, [*first, change("u", {"id": 2}, {"a": "back"}, pos=11)])
    assert [{"id": "1", "a": "new"}, {"id": "2", "a": "back"}] == lake.rows()
    lake.command("park")
    assert "is parked" in (lake.command("sweep", argument=loaded.isoformat()).error or "")
