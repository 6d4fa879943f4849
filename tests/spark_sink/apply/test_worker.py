"""The worker's decisions for one route, without Spark and without tables."""

from __future__ import annotations

import pickle
import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.table_id import TableId
from spark_sink.apply import worker
from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.apply.table_commits import DAY
from spark_sink.apply.worker import Task
from spark_sink.config.table_rules import TableRules
from spark_sink.events.parking import NOTHING_PARKED, Cause, Parking
from spark_sink.operations.resume import Replay
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import AddColumns, Create, TableColumn, TableShape
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import (
    NO_LATENCY,
    Deferred,
    Done,
    NeedsDdl,
    NeedsRecords,
    NeedsSpark,
    Outcome,
    Parked,
    TableReport,
)
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.spark_operations import Clear
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of
from tests.spark_sink.memory import MemoryTable, MemoryTables

SHAPE = TableShape(
    TableId("shop", "sales", None, "orders"), (TableColumn("id", "string"), TableColumn("a", "string")), ("id",)
)
RULES = TableRules()
PATTERN = TablePattern.parse("{source}_{db}_{schema}.{table}")


def _reports(
    tables: MemoryTables,
    events: Sequence[ChangeEvent],
    batch: int = 0,
    rules: TableRules = RULES,
    parking: Parking = NOTHING_PARKED,
    refused: Mapping[str, str] | None = None,
) -> list[TableReport]:
    task = Task(tables, PATTERN, SchemaCatalog(), "app", batch, rules, parking, refused or {})
    return list(task.route(_records(events)))


def _records(events: Sequence[ChangeEvent], route: str = "shop_sales.orders") -> pa.Table:
    names = ("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope", "key", "key_old", "after")
    columns = {name: pa.array([getattr(e, name) for e in events], pa.string()) for name in (*names, "after_state")}
    columns |= {
        "schema_id": pa.array([event.schema_id for event in events], pa.string()),
        "notes": pa.array([None] * len(events), pa.string()),
        "withholds": pa.array([event.unavailable is not None for event in events]),
        "partition": pa.array([0] * len(events), pa.int32()),
        "offset": pa.array(range(len(events)), pa.int64()),
        "ts": pa.array([event.ts_origin_us for event in events], pa.int64()),
        "committed": pa.array([event.ts_commit_us for event in events], pa.int64()),
        "tx": pa.array([event.tx.id if event.tx else None for event in events], pa.string()),
        "value": pa.array([b""] * len(events)),
        "route": pa.array([route] * len(events)),
        "bucket": pa.array([0] * len(events), pa.int32()),
    }
    return pa.table(columns)


def _bare(records: pa.Table) -> pa.Table:
    """Return the rows as they arrive if the table has not requested more."""
    return records.set_column(records.column_names.index("value"), "value", pa.nulls(len(records), pa.binary()))


def test_a_missing_table_is_asked_for() -> None:
    """Nothing is written, not even to quarantine, until the table has what its events need."""
    events = [change("c", {"id": "1"}, {"b": "x"}, pos=1), change("c", None, {}, pos=2)]
    tables = MemoryTables()
    (report,) = _reports(tables, events)
    assert isinstance(report.outcome, NeedsDdl)
    assert isinstance(report.outcome.step, Create)
    tables = MemoryTables(orders=MemoryTable(SHAPE))
    (report,) = _reports(tables, events)
    assert NeedsDdl(AddColumns((TableColumn("b", "string"),))) == report.outcome
    assert ([], []) == (tables.rejected, tables.by_name["shop_sales.orders"].commits)


def test_the_memory_of_the_worker_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The report has this process's resident memory, or 0 if the system does not report it."""
    status = Path("/proc/self/status").read_text()
    (kibibytes,) = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert worker._resident_megabytes() == pytest.approx(int(kibibytes) / 1024, abs=50)
    statm = tmp_path / "statm"
    monkeypatch.setattr(worker, "_STATM", statm)
    for pages, megabytes in ((None, 0), (300 * 2**20 // resource.getpagesize(), 300)):
        if pages is not None:
            statm.write_text(f"1 {pages} 3 4 5 6 7\n")
        (report,) = _reports(MemoryTables(), [change("t", None, pos=1)])
        assert megabytes == report.counters.megabytes


def test_a_truncate_makes_no_table() -> None:
    """A truncate of a missing table does not create it."""
    (report,) = _reports(MemoryTables(), [change("t", None, pos=1)])
    assert (Done(), 0) == (report.outcome, report.counters.commits)


def test_commits_are_numbered_within_the_batch() -> None:
    """Each commit has its own version, and the next batch begins beyond all possible versions of this one."""
    table = MemoryTable(SHAPE)
    events = [change("c", {"id": "1"}, {}, pos=1), change("t", None, pos=2), change("c", {"id": "2"}, {}, pos=3)]
    _reports(MemoryTables(orders=table), events, batch=2)
    first = 2 * MAX_SEGMENTS
    assert [first, first + 1, first + 2] == [marker.version for marker in table.commits]


def test_more_commits_than_numbers_are_refused() -> None:
    """A batch with more truncates of a table than available numbers is parked as a whole. No version is reused."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    (report,) = _reports(tables, [change("t", None, pos=pos) for pos in range(MAX_SEGMENTS)])
    assert MAX_SEGMENTS == report.parked
    assert [] == table.commits
    assert [["TABLE_REFUSED"] * MAX_SEGMENTS] == [reasons for _, _, reasons in tables.held]


def test_records_are_asked_for() -> None:
    """A task without records writes what needs none. For an event to set aside it requests them first, and with them it
    continues after what it has written.
    """
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    events = [change("c", {"id": "1"}, {}, pos=1), change("t", None, pos=2), change("c", {"id": None}, {}, pos=3)]
    whole = _records(events)
    task = Task(tables, PATTERN, SchemaCatalog(), "app", 0, RULES)
    (asks,) = task.route(_bare(whole))
    assert (NeedsRecords(), 3, {}) == (asks.outcome, asks.counters.commits, asks.counters.rejected)
    assert ([], 0) == (tables.rejected, asks.counters.latency.count)
    (report,) = task.route(whole)
    counted = report.counters
    assert (Done(), 2, 0, {"KEY_UNKNOWN": 1}) == (report.outcome, counted.skipped, counted.commits, counted.rejected)
    assert [(Marker("app/shop_sales.orders", 2), ["KEY_UNKNOWN"])] == tables.rejected
    assert 2 == len(table.commits)


def test_a_table_to_be_parked_asks_for_its_records() -> None:
    """A table is reported as parked only after its events are stored."""
    tables = MemoryTables(orders=MemoryTable(SHAPE))
    whole = _records([change("c", {"id": "1"}, {}, pos=1)])
    tried = {"shop_sales.orders": "it is read-only"}
    task = Task(tables, PATTERN, SchemaCatalog(), "app", 0, RULES, refused=tried)
    (asks,), (report,) = task.route(_bare(whole)), task.route(whole)
    assert (NeedsRecords(), Parked("it is read-only", 1)) == (asks.outcome, report.outcome)


def test_rejected_before_written() -> None:
    """Quarantined events carry the marker of the commit that omits them, whether or not that commit is made."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    _reports(tables, [change("c", None, {}, pos=1), change("t", None, pos=2), change("c", {"id": None}, {}, pos=3)])
    assert [
        (Marker("app/shop_sales.orders", 0), ["KEY_UNKNOWN"]),
        (Marker("app/shop_sales.orders", 2), ["KEY_UNKNOWN"]),
    ] == (tables.rejected)
    assert [] == table.commits


def test_broken_events_go_with_their_segment() -> None:
    """Unreadable events are quarantined when their segment is written, or parked with it."""
    tables = MemoryTables(orders=MemoryTable(SHAPE))
    row, broken = change("c", {"id": "1"}, {}, pos=9), change("c", None, {}, pos=9)
    stops = [change("c", {"id": "2"}, {}, pos=9, scope=OTHER_SCOPE), change("t", None, pos=20)]
    _reports(tables, [row, broken, change("t", None, pos=2), broken, row, broken, *stops, broken, row, broken])
    app = "app/shop_sales.orders"
    assert [(Marker(app, 0), ["KEY_UNKNOWN"] * 2), (Marker(app, 2), ["KEY_UNKNOWN"] * 2)] == tables.rejected
    assert [7, 9, 10] == tables.held[0][1]


def test_a_truncate_of_one_of_several_scopes() -> None:
    """A table with several scopes applies nothing of a batch after a truncate. Or it is emptied of all scopes, and
    earlier rows do not return.
    """
    first, other = change("c", {"id": "1"}, {}, pos=5), change("c", {"id": "2"}, {}, pos=9, scope=OTHER_SCOPE)
    truncate, after = change("t", None, pos=6), change("c", {"id": "3"}, {}, pos=7)
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    (report,) = _reports(tables, [first, other, truncate, after])
    assert (1, 2, [2, 3]) == (report.counters.commits, report.parked, tables.held[0][1])
    assert [("1",), ("2",)] == sorted(table.visible())
    (report,) = _reports(tables, [truncate, after, other], batch=1, rules=TableRules(all_scopes=True))
    assert (Done(), {"truncated": 1}) == (report.outcome, report.counters.stale)
    assert [("3",)] == sorted(table.visible())
    _reports(tables, [change("c", {"id": "2"}, {}, pos=10, scope=OTHER_SCOPE), truncate], batch=2)
    assert [("2",), ("3",)] == sorted(table.visible())


def test_what_is_left_of_a_refused_table() -> None:
    """What a batch wrote before the table stopped remains, and the rest is parked, including its broken events."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    reloaded = msgspec.structs.replace(change("r", {"id": "1"}, {}, pos=0), pos_scope="native:shop/t")
    native = msgspec.structs.replace(change("c", {"id": "1"}, {}, pos=1), pos_scope="native:shop/t")
    native = msgspec.structs.replace(native, pos=position(0, 0, native=7))
    (report,) = _reports(tables, [native, change("c", None, {}, pos=2), reloaded])
    assert [(Marker("app/shop_sales.orders", 0), [0, 1, 2], ["RELOAD_UNANNOUNCED"] * 3)] == tables.held
    assert ([], {}) == (tables.rejected, report.counters.rejected)
    truncate = change("t", None, pos=4, scope=OTHER_SCOPE)
    broken = [change("c", None, {}, pos=pos) for pos in (3, 5)]
    (report,) = _reports(tables, [change("c", {"id": "2"}, {}, pos=2), broken[0], truncate, broken[1]], batch=1)
    assert ({"KEY_UNKNOWN": 2}, [2]) == (report.counters.rejected, tables.held[-1][1])


def test_a_broken_event_marks_its_row() -> None:
    """An unreadable event marks its row, like one whose value does not fit."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    _reports(tables, [change("c", {"id": "1"}, {"a": "x"}, pos=1), change("c", {"id": "2"}, {"a": "x"}, pos=2)])
    _reports(tables, [change("?", {"id": "1"}, {}, pos=3)], batch=1)
    assert [True, False] == [table.remembered[key].incomplete for key in sorted(table.remembered)]


def test_tombstones_have_a_lifetime() -> None:
    """Once per day of event time, the table forgets old deletions, up to the day that an earlier batch had reached. The
    first batch forgets nothing.
    """
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    for batch, day in enumerate([100, 100, 101, 101, 99, 102]):
        _delete_on(day, batch, tables)
    assert [70 * DAY, 71 * DAY] == table.forgotten


def test_one_record_far_ahead_forgets_no_deletes() -> None:
    """A record from 2099 in a backlog forgets only what the days before it allow. The backlog keeps its deletions until
    its days have caught up.
    """
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    far_ahead = 47_482  # 2100-01-01
    for batch, day in enumerate([100, 101, far_ahead, far_ahead, 102, 150]):
        _delete_on(day, batch, tables)
    assert [70 * DAY, 71 * DAY] == table.forgotten


def _delete_on(day: int, batch: int, tables: MemoryTables) -> None:
    event = msgspec.structs.replace(change("d", {"id": "1"}, pos=batch), ts_origin_us=day * DAY)
    _reports(tables, [event], batch=batch, rules=TableRules(tombstone_days=30))


def test_a_parked_table_takes_nothing() -> None:
    """All events of a parked table wait, including broken ones, whether or not the table could apply them."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    held = {"shop_sales.orders": Cause("TRUNCATE_SCOPES", "two scopes")}
    events = [change("c", {"id": "1"}, {}, pos=1), change("c", None, {}, pos=2), change("t", None, pos=3)]
    (report,) = _reports(tables, events, batch=3, parking=Parking(held=held))
    assert (Deferred(3), 0, {}) == (report.outcome, report.counters.commits, report.counters.rejected)
    assert [(Marker("app/shop_sales.orders", 3 * MAX_SEGMENTS), [0, 1, 2], ["TRUNCATE_SCOPES"] * 3)] == tables.held
    _reports(tables, [change("c", None, {}, pos=4)], batch=4, parking=Parking(held=held))
    assert ([], [], 2) == (table.commits, tables.rejected, len(tables.held))


def test_a_batch_that_parked_its_table_comes_again() -> None:
    """If the batch is killed between parking and acknowledgement, nothing is parked or applied twice, even if the table
    was resumed before the replay.
    """
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    events = [
        change("c", {"id": "1"}, {}, pos=5),
        change("c", {"id": "2"}, {}, pos=9, scope=OTHER_SCOPE),
        change("t", None, pos=6),
        change("c", {"id": "3"}, {}, pos=7),
    ]
    _reports(tables, events, batch=1)
    cause = Cause("TRUNCATE_SCOPES", "two scopes")
    for parking in (Parking(held={"shop_sales.orders": cause}, again=True), Parking(again=True)):
        (report,) = _reports(tables, events, batch=1, parking=parking)
        assert (1, 0, 0) == (report.counters.skipped, report.parked, report.counters.commits)
        assert table.version == report.version, "the manifest would not know of the commit before"
    assert ([[2, 3]], [("1",), ("2",)]) == ([places for _, places, _ in tables.held], sorted(table.visible()))
    _reports(tables, [change("c", {"id": "4"}, {}, pos=8)], batch=2, parking=Parking(again=True))
    assert [("1",), ("2",), ("4",)] == sorted(table.visible())


def test_too_many_broken_events() -> None:
    """A table with more broken events than allowed is parked before they are quarantined."""
    few = TableRules(park_rejected=1)
    good, *broken = [change("c", {"id": "1"}, {}, pos=1), *(change("c", None, {}, pos=pos) for pos in (2, 3))]
    for events, parked, rejected in (([good, broken[0]], 0, 1), ([good, *broken], 3, 0), (broken, 2, 0)):
        tables = MemoryTables(orders=MemoryTable(SHAPE))
        (report,) = _reports(tables, events, rules=few)
        assert (parked, rejected) == (report.parked, sum(report.counters.rejected.values()))
        assert bool(parked) == isinstance(report.outcome, Parked)


def test_a_task_travels() -> None:
    """The task is serialized to the workers with all its content, including what a table rejects."""
    tables = DeltaTables("warehouse", "app", RULES.engines)
    task = Task(tables, PATTERN, SchemaCatalog(), "app", 0, RULES, refused={"t": "a rule"})
    there = pickle.loads(pickle.dumps(task))
    assert (tables, RULES, {"t": "a rule"}) == (there.tables, there.rules, there.refused)


class OrderingTable(MemoryTable):
    """A table that the driver writes. Here, the test executes the orders."""

    def __init__(self, shape: TableShape) -> None:
        super().__init__(shape)
        self.ordered: list[tuple[TableChanges, tuple[Marker, ...]]] = []

    def keep_deleted_rows(self, *, apart: bool) -> None:
        """Begin without orders, as a table does that a worker has just opened."""
        self.orders = []

    def write(self, changes: TableChanges, *markers: Marker) -> None:
        self.orders.append(Clear({}, markers[0]))
        self.ordered.append((changes, markers))

    def obey(self) -> None:
        for changes, markers in self.ordered:
            super().write(changes, *markers)
        self.orders, self.ordered = [], []


def test_a_table_that_the_driver_writes() -> None:
    """A run ends with the first ordered commit, and the next run continues after it."""
    table = OrderingTable(SHAPE)
    tables = MemoryTables(orders=table)
    events = [change("c", {"id": "1"}, {}, pos=1), change("t", None, pos=2), change("c", {"id": "2"}, {}, pos=3)]
    events = [msgspec.structs.replace(event, ts_commit_us=1) for event in events]
    other = msgspec.structs.replace(change("c", {"id": "1"}, pos=9, kind="watermark"), ts_commit_us=1)
    assert 1 == _reports(MemoryTables(orders=MemoryTable(SHAPE)), [events[0], other])[0].counters.latency.count
    (report,) = _reports(tables, events, batch=2)
    assert NO_LATENCY == report.counters.latency, "nothing is there yet"
    first = 2 * MAX_SEGMENTS
    orders = (Clear({}, Marker("app/shop_sales.orders", first)),)
    assert (NeedsSpark(orders, more=True), []) == (report.outcome, table.commits)
    table.obey()
    (report,) = _reports(tables, events, batch=2)
    assert NeedsSpark((Clear({}, Marker("app/shop_sales.orders", first + 2)),)) == report.outcome
    table.obey()
    (report,) = _reports(tables, events, batch=2)
    assert (Done(), 3, [("2",)]) == (report.outcome, report.counters.skipped, sorted(table.visible()))


def test_a_commit_that_the_driver_could_not_make() -> None:
    """If the driver cannot make a commit, its events and later ones are parked. Of those already quarantined, only
    events that leave a gap are parked.
    """
    table = OrderingTable(SHAPE)
    tables = MemoryTables(orders=table)
    events = [
        change("c", {"id": "1"}, {}, pos=1),
        change("c", {"id": None}, {}, pos=2),
        change("u", {"id": "3"}, {"nobody": "knows"}, pos=3, schema=schema_of({"id": "string"})),
        change("t", None, pos=4),
        change("c", {"id": "2"}, {}, pos=5),
        change("c", None, {}, pos=6),
    ]
    (report,) = _reports(tables, events)
    (report,) = _reports(tables, events, refused={report.table: "a rule"})
    assert (Parked("a rule", 5), {}) == (report.outcome, report.counters.rejected)
    name = "app/shop_sales.orders"
    assert [(Marker(name, 0), ["KEY_UNKNOWN", "SCHEMA_UNKNOWN"])] == tables.rejected
    assert [(Marker(name, 0), [0, 2, 3, 4, 5], ["TABLE_REFUSED"] * 5)] == tables.held


def test_parked_turns_that_the_driver_writes() -> None:
    """A replay ends with the first turn that has an order, and continues after it. A rejected commit also ends it, and
    nothing is parked again.
    """
    table = OrderingTable(SHAPE)
    tables = MemoryTables(orders=table)
    replay = Replay(tables, PATTERN, SchemaCatalog(), "parked", 0, RULES)
    turns = {
        "3": [change("c", {"id": "1"}, {}, pos=1), change("t", None, pos=2), change("c", {"id": "2"}, {}, pos=3)],
        "5": [change("c", {"id": "3"}, {}, pos=4)],
        "6": [change("c", {"id": "4"}, {}, pos=5)],
    }
    batches = [batch for turn, events in turns.items() for batch in _records(events, turn).to_batches()]

    def run(refused: Mapping[str, str]) -> list[tuple[str, Outcome]]:
        answers = [row for batch in replace(replay, refused=refused)(batches) for row in batch.column(0).to_pylist()]
        reports = [msgspec.msgpack.decode(answer, type=TableReport) for answer in answers]
        return [(report.route, report.outcome) for report in reports]

    def order(turn: int, number: int, *, more: bool = False) -> NeedsSpark:
        return NeedsSpark((Clear({}, Marker("parked/shop_sales.orders", turn * MAX_SEGMENTS + number)),), more)

    assert [("3", order(3, 0, more=True))] == run({})
    table.obey()
    assert [("3", order(3, 2))] == run({})
    table.obey()
    assert [("3", Done()), ("5", order(5, 0))] == run({})
    assert [("3", Done()), ("5", Parked("a rule", 0))] == run({"shop_sales.orders": "a rule"})
    table.obey()
    assert ("6", order(6, 0)) == run({})[-1]
    table.obey()
    assert [Done()] * 3 == [outcome for _, outcome in run({})]
    assert ([("2",), ("3",), ("4",)], []) == (sorted(table.visible()), tables.held)
