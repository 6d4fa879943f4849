"""If two source tables map to one table, one gets it and the other waits. Every documented resolution works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from cdc_core.envelope import ChangeEvent
from cdc_core.table_id import TableId
from spark_sink.apply.existing_tables import check_tables
from spark_sink.apply.worker import Task
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import State
from spark_sink.errors import ConfigError
from spark_sink.events.parking import Cause, Parking
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import Deferred, NeedsDdl, TableReport
from spark_sink.tables.changes import Marker
from tests.spark_sink import lake as lake_module
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import PATTERN, Lake, Topic
from tests.spark_sink.memory import MemoryTable, MemoryTables
from tests.spark_sink.records import records, refusal

ORDERS, SHOUTED = "shop/sales//orders", "shop/sales//ORDERS"
NAME, CUSTOMERS, NEW = "shop_sales.orders", "shop_sales.customers", "shop_sales.orders_2"
OWNER = TableId("shop", "sales", None, "orders")
SHAPE = TableShape(OWNER, (TableColumn("id", "string"), TableColumn("a", "string")), ("id",))

# A source table that also maps exactly to shop_sales.orders.
OTHER = "shop_sales///orders"
OTHER_ID = TableId("shop_sales", None, None, "orders")


def _orders(id: int, a: str = "x", **more: Any) -> ChangeEvent:
    return change(more.pop("op", "c"), {"id": str(id)}, {"a": a}, pos=more.pop("pos", id), **more)


def _shouted(id: int, a: str = "X", **more: Any) -> ChangeEvent:
    """Return an event of table ORDERS, which has its own partition."""
    return _orders(id, a, table="ORDERS", scope="raw:9@topic-id", **more)


def _other(id: int) -> ChangeEvent:
    return msgspec.structs.replace(_orders(id, "other"), source="shop_sales", db=None)


def _customer(id: int) -> ChangeEvent:
    return change("c", {"id": str(id)}, {}, pos=id, table="customers")


def _parked(lake: Lake) -> list[tuple[str, str, int | None]]:
    """Return the name, reason and offset of waiting events, in order."""
    read = DeltaTable(lake.path("_cdc.parked")).to_pyarrow_table().to_pylist()
    rows = sorted(read, key=lambda row: (row["turn"], row["kafka_offset"] or 0))
    return [(row["target"], row["reason"], row["kafka_offset"]) for row in rows]


def _values(lake: Lake, table: str = NAME) -> list[tuple[str, str]]:
    return [(row["id"], row["a"]) for row in lake.rows(table)]


def _told_apart(lake: Lake, table: str = NAME) -> list[tuple[str, str, str]]:
    rows = DeltaTable(lake.path(table)).to_pyarrow_table().to_pylist()
    return sorted((row["_cdc_source"], row["id"], row["a"]) for row in rows)


class TestWhoHasTheName:
    """Ownership of a route's table, without Spark."""

    def _reports(
        self,
        tables: MemoryTables,
        events: Sequence[ChangeEvent],
        rules: TableRules | None = None,
        parking: Parking | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> dict[str, TableReport]:
        pattern = TablePattern.parse(PATTERN, rename or {})
        task = Task(tables, pattern, SchemaCatalog(), "app", 0, rules or TableRules(), parking or Parking())
        return {report.source: report for report in task.route(records(events))}

    def test_who_came_first(self) -> None:
        """Of two new source tables, the first in topic order gets the table. A truncate creates no table."""
        truncate = change("t", None, pos=1, table="ORDERS")
        for first, second in ((_orders(1), _shouted(1)), (truncate, _orders(1))):
            found = self._reports(MemoryTables(), [first, second])
            assert isinstance(found[ORDERS].outcome, NeedsDdl)
            assert (SHOUTED, 1) == (found[SHOUTED].table, found[SHOUTED].parked)

    def test_who_has_the_table(self) -> None:
        """The owner keeps the table in any order of arrival. Markers and quarantined events of the two differ."""
        tables = MemoryTables(orders=MemoryTable(SHAPE))
        broken = change("c", {"id": None}, {}, pos=8)
        found = self._reports(tables, [_other(1), _orders(1), broken])
        assert ((OTHER, 1), (NAME, 1)) == (
            (found[OTHER].table, found[OTHER].parked),
            (NAME, found[ORDERS].counters.commits),
        )
        assert [(Marker(f"app/{OTHER}", 0), [0], ["TABLE_CLASH"])] == tables.held
        assert [(Marker(f"app/{NAME}", 0), ["KEY_UNKNOWN"])] == tables.rejected
        assert (f"the source table {OTHER} would be written to {NAME}, the table of {ORDERS}") in refusal(found[OTHER])

    def test_who_waits_for_it(self) -> None:
        """As long as no table exists, the events waiting for one are not mixed with those of the other."""
        held = Parking(held={NAME: Cause("TABLE_REFUSED", "no key", sources=(OWNER,))})
        tables = MemoryTables()
        found = self._reports(tables, [_other(1), _orders(1)], parking=held)
        assert ((OTHER, 1), (NAME, 1)) == (
            (found[OTHER].table, found[OTHER].parked),
            (found[ORDERS].table, found[ORDERS].parked),
        )
        assert ["TABLE_CLASH"] in [reasons for _, _, reasons in tables.held]

    def test_what_is_declared(self) -> None:
        """The tables declared as shared come before others, whichever came first."""
        found = self._reports(MemoryTables(), [_other(1), _orders(1)], TableRules(shared={NAME: ("shop/*",)}))
        assert isinstance(found[f"*///{NAME}"].outcome, NeedsDdl)
        assert "which contains the source tables that tables.shared declares" in refusal(found[OTHER])

    def test_a_truncate_of_the_other(self) -> None:
        """The truncate of the other table waits and does not empty a table that is not its own."""
        tables = MemoryTables(orders=MemoryTable(SHAPE))
        found = self._reports(tables, [msgspec.structs.replace(_other(9), op="t", key=None, after=None)])
        assert (OTHER, 1, 0) == (found[OTHER].table, found[OTHER].parked, found[OTHER].counters.commits)

    def test_what_waits_under_an_older_name(self) -> None:
        """Later events wait under the same name, wherever they map by now. A table can be renamed while parked."""
        held = Parking(held={NAME: Cause("COMMAND", "", sources=(OWNER,))})
        tables = MemoryTables()
        found = self._reports(tables, [_orders(2)], parking=held, rename={ORDERS: NEW})
        assert (NAME, Deferred(1)) == (found[ORDERS].table, found[ORDERS].outcome)


def test_rename(lake: Lake) -> None:
    """All tables but the second continue, and the log explains the resolution. Its events wait once, across batches,
    new checkpoints and replays. After it gets its own name, they are applied in order.
    """
    schema = lake.announce(schema_of({"id": "string", "a": "string"}, table="ORDERS"))
    with capture_logs() as logs:
        lake.apply(0, [_customer(1), _orders(1), _shouted(1, schema=schema), _orders(2)])
    (told,) = (line for line in logs if line["event"] == "table parked")
    assert (SHOUTED, 1, f"spark-sink resume {SHOUTED}") == (told["table"], told["events"], told["then"])
    assert "give it a name of its own in tables.rename" in told["reason"]
    lake.applier = lake.new_applier("checkpoint-2")
    again = [_shouted(2, schema=schema), _orders(3), _customer(2)]
    for _ in range(2):
        lake.apply(0, again)
        lake.applier = lake.new_applier("checkpoint-2")
    assert [(SHOUTED, "TABLE_CLASH", 2), (SHOUTED, "TABLE_CLASH", 0)] == _parked(lake)
    assert (3, 2) == (len(lake.rows()), len(lake.rows(CUSTOMERS)))
    failed = lake.command("resume", SHOUTED)
    assert (State.FAILED, True) == (failed.state, "it stays parked: the source table" in (failed.error or ""))

    lake.command("park", CUSTOMERS)
    lake.use(TableRules(), {"*/sales//ORDER?": CUSTOMERS})
    assert f"{CUSTOMERS}, which is also parked" in (lake.command("resume", SHOUTED).error or "")
    lake.use(TableRules(), {"*/sales//ORDER?": NEW})
    lake.apply(1, [_shouted(1, "later", op="u", pos=9, full=False, schema=schema)])
    assert 3 == sum(reason == "TABLE_CLASH" for _, reason, _ in _parked(lake))
    assert (State.DONE, "3 events replayed") == (
        (done := lake.command("resume", SHOUTED)).state,
        done.result,
    )
    lake.apply(2, [_shouted(3, schema=schema), _orders(4)])
    assert ([("1", "later"), ("2", "X"), ("3", "X")], 4) == (_values(lake, NEW), len(lake.rows()))
    assert [CUSTOMERS] == list(lake.control.held())
    assert {NEW: lake.version(NEW)}.keys() < lake.control.batches.tables()
    assert "it is not parked" == lake.command("resume", SHOUTED).result


def test_rename_to_a_name_that_is_taken(lake: Lake) -> None:
    """Two source tables never write to one table by accident. They are in the same task, and one of them waits."""
    lake.use(TableRules(), {"shop/sales//order's (1)?": "shop_sales.Orders"})
    item = _orders(7, "item", table="order's (1)s")
    lake.apply(0, [_orders(1), item])
    assert ([("1", "x")], [("shop/sales//order's (1)s", "TABLE_CLASH", 1)]) == (_values(lake), _parked(lake))


def test_exclude(lake: Lake) -> None:
    """An excluded table is counted but not written or stored. Only a separate command discards its waiting events."""
    lake.apply(0, [_orders(1), _shouted(1)])
    assert "tables.exclude excludes none of its source tables" in (lake.command("discard", SHOUTED).error or "")
    lake.use(TableRules(exclude=("shop/*//ORDERS",)))
    reports = lake.apply(1, [_shouted(2), _orders(2), _shouted(3)])
    assert (2, 1) == (
        sum(report.counters.ignored.get("excluded", 0) for report in reports),
        sum(report.counters.events for report in reports),
    )
    assert 2.0 == lake.metrics.registry.get_sample_value("cdc_sink_excluded_events_total")
    assert f"Discard them with `spark-sink discard {SHOUTED}`" in (lake.command("resume", SHOUTED).error or "")
    assert 1 == len(_parked(lake))
    told = [lake.command("discard", SHOUTED).result for _ in range(2)]
    assert (["1 events discarded", "it is not parked"], [], {}) == (told, _parked(lake), lake.control.held())
    assert [("1", "x"), ("2", "x")] == _values(lake)


def test_shared(lake: Lake) -> None:
    """If the table is declared as shared in any spelling, it contains the rows of both sources, in any order of
    arrival. A source that is not declared waits and is applied once it is.
    """
    lake.use(TableRules(shared={"SHOP_sales.Orders": (ORDERS,)}))
    lake.apply(0, [_shouted(1), _orders(1), _other(1)])
    lake.applier = lake.new_applier("checkpoint-2")
    lake.apply(1, [_orders(2), _other(2)])
    lake.apply(2, [_orders(3), _shouted(2)])
    spelled = "shop_sales.ORDERS"
    both = [(SHOUTED, "1", "X"), (SHOUTED, "2", "X"), *[(ORDERS, id, "x") for id in "123"]]
    assert (both, [OTHER, OTHER]) == (_told_apart(lake, spelled), [name for name, _, _ in _parked(lake)])
    lake.use(TableRules(shared={NAME: (ORDERS, OTHER)}))
    assert State.DONE == lake.command("resume", OTHER).state
    assert [*both, *[(OTHER, id, "other") for id in "12"]] == _told_apart(lake, spelled)
    with pytest.raises(ConfigError, match=r"contains several source tables, but tables\.shared no longer declares it"):
        check_tables(lake.control.batches.tables(), lake.tables, TableRules())


def test_shared_afterwards(lake: Lake) -> None:
    """A table of one source must be rebuilt before it can be shared. Until then, the start fails. Afterwards, the
    waiting events are applied.
    """
    topic = Topic(lake)
    topic.apply(0, [_orders(1), _shouted(1)])
    rules = TableRules(shared={NAME: (ORDERS,)})
    with pytest.raises(ConfigError, match=rf"{NAME} was created only for {ORDERS}, but tables\.shared declares it"):
        check_tables(lake.control.batches.tables(), lake.tables, rules)
    lake.use(rules)
    assert State.DONE == lake.command("rebuild", NAME).state
    check_tables(lake.control.batches.tables(), lake.tables, rules)
    topic.apply(1, [_shouted(1, "later", op="u", pos=9, full=False)])
    assert State.DONE == lake.command("resume", SHOUTED).state
    assert ([(SHOUTED, "1", "later"), (ORDERS, "1", "x")], []) == (_told_apart(lake), _parked(lake))


def test_tables_without_the_first_folder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two source tables share a table. One of them has its name from the pattern, and the other one by a rename."""
    monkeypatch.setattr(lake_module, "PATTERN", "{schema}.{table}")
    lake.use(TableRules(shared={"orders": (ORDERS, "other/sales//old")}), {"other/sales//old": "orders"})
    events = [_orders(1), change("c", {"id": "2"}, {"a": "y"}, pos=2, source="other", table="old", scope="raw:8@t")]
    lake.apply(0, events)
    assert {"1": "x", "2": "y"} == {row["id"]: row["a"] for row in lake.rows("orders")}
