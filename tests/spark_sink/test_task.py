"""The worker's decisions on one route, without Spark and without tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_sink.evolve import AddColumns, Column, Create, Shape
from spark_sink.fold import Key, Mark
from spark_sink.names import TableId, TablePattern
from spark_sink.schemas import Catalog
from spark_sink.tables import Changes, Marker
from spark_sink.task import MAX_SEGMENTS, Report, Task
from tests.spark_sink.changes import change
from translator.envelope import ChangeEvent

SHAPE = Shape(TableId("shop", "sales", None, "orders"), (Column("id", "string"), Column("a", "string")), ("id",))


class MemoryTable:
    """Counts what it is asked to write."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.commits: list[Marker] = []

    def applied(self, app: str) -> int | None:
        return max((marker.version for marker in self.commits if marker.app == app), default=None)

    def marks(self, keys: object) -> dict[Key, Mark]:
        return {}

    def rows(self, keys: object) -> dict[Key, dict[str, object]]:
        return {}

    def write(self, changes: Changes, marker: Marker) -> None:
        self.commits.append(marker)

    def truncate(self, scope: str, pos: str, marker: Marker) -> None:
        self.commits.append(marker)


class MemoryTables:
    def __init__(self, **tables: MemoryTable) -> None:
        self.by_name = {f"shop_sales.{name}": table for name, table in tables.items()}
        self.rejected: list[tuple[Marker, list[str]]] = []

    def open(self, name: str) -> MemoryTable | None:
        return self.by_name.get(name)

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        self.rejected.append((marker, rows.column("reason").to_pylist()))


def _reports(tables: MemoryTables, events: Sequence[ChangeEvent], batch: int = 0) -> list[Report]:
    task = Task(tables, TablePattern.parse("{source}_{db}_{schema}.{table}"), Catalog(), "app", batch)
    names = ("kind", "op", "source", "db", "schema", "table", "pos", "pos_scope", "key", "key_old", "after")
    columns = {name: pa.array([getattr(e, name) for e in events], pa.string()) for name in (*names, "after_state")}
    columns |= {
        "schema_id": pa.array([event.schema_id for event in events], pa.string()),
        "withholds": pa.array([event.unavailable is not None for event in events]),
        "partition": pa.array([0] * len(events), pa.int32()),
        "offset": pa.array(range(len(events)), pa.int64()),
        "value": pa.array([b""] * len(events)),
        "route": pa.array(["shop_sales.orders"] * len(events)),
        "bucket": pa.array([0] * len(events), pa.int32()),
    }
    return list(task.route(pa.table(columns)))


def test_a_missing_table_is_asked_for() -> None:
    """Nothing is written, not even to quarantine, before the table is what its events need."""
    events = [change("c", {"id": "1"}, {"b": "x"}, pos=1), change("c", None, {}, pos=2)]
    tables = MemoryTables()
    (report,) = _reports(tables, events)
    assert isinstance(report.step, Create)
    tables = MemoryTables(orders=MemoryTable(SHAPE))
    (report,) = _reports(tables, events)
    assert AddColumns((Column("b", "string"),)) == report.step
    assert ([], []) == (tables.rejected, tables.by_name["shop_sales.orders"].commits)


def test_a_truncate_makes_no_table() -> None:
    """A truncate of a table that is not there asks for nothing."""
    (report,) = _reports(MemoryTables(), [change("t", None, pos=1)])
    assert (None, None, 0) == (report.step, report.refused, report.commits)


def test_commits_are_numbered_within_the_batch() -> None:
    """Each commit has its own version, and the next batch begins where no commit of this one can reach."""
    table = MemoryTable(SHAPE)
    events = [change("c", {"id": "1"}, {}, pos=1), change("t", None, pos=2), change("c", {"id": "2"}, {}, pos=3)]
    _reports(MemoryTables(orders=table), events, batch=2)
    first = 2 * MAX_SEGMENTS
    assert [first, first + 1, first + 2] == [marker.version for marker in table.commits]


def test_more_commits_than_numbers_are_refused() -> None:
    """A batch with more truncates of a table than there are numbers goes to quarantine whole; no version is reused."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    (report,) = _reports(tables, [change("t", None, pos=pos) for pos in range(MAX_SEGMENTS)])
    assert report.refused is not None
    assert [] == table.commits
    assert [["TABLE_REFUSED"] * MAX_SEGMENTS] == [reasons for _, reasons in tables.rejected]


def test_rejected_before_written() -> None:
    """Quarantine carries the marker of the commit that leaves the event out, whether or not that commit is made."""
    table = MemoryTable(SHAPE)
    tables = MemoryTables(orders=table)
    _reports(tables, [change("c", None, {}, pos=1), change("t", None, pos=2), change("c", {"id": None}, {}, pos=3)])
    assert [
        (Marker("app/shop_sales.orders", 0), ["KEY_UNKNOWN"]),
        (Marker("app/shop_sales.orders", 2), ["KEY_UNKNOWN"]),
    ] == (tables.rejected)
    assert [1] == [marker.version for marker in table.commits]
