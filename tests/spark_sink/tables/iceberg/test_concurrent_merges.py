"""Another writer changes an Iceberg table while the driver merges into it. The merge is rejected, or the rows equal
those of a serial order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from cdc_core.envelope import ChangeEvent
from dev.iceberg.hive_metastore import HiveMetastore
from spark_sink.config.iceberg_catalog import CatalogType, IcebergCatalog
from spark_sink.errors import Overtaken
from spark_sink.spark.session import sibling
from spark_sink.tables.formats import ask_catalog
from spark_sink.tables.iceberg import spark as iceberg_spark
from spark_sink.tables.iceberg.catalogs import quoted
from spark_sink.tables.iceberg.merge_on_read import merge_files
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.spark_writer import THREADS
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.conftest import rest_access
from tests.spark_sink.lake import MergingLake, rewrite_as_others
from tests.spark_sink.tables.iceberg.conftest import ICEBERG, jdbc_access

NAME = "shop_sales.orders"
COLUMNS = {"id": "int64", "a": "string", "n": "int32"}
PATIENCE_SECONDS = 120

# The values of each row, without the key. A key can be in several rows.
Rows = list[tuple[int, str | None, int | None]]


class Other(NamedTuple):
    """A change by another writer.

    Args:
        changes: makes the change.
        rows: returns the rows after the change.
        conflicts: whether the merge is rejected.
    """

    changes: Callable[[MergingLake, str], object]
    rows: Callable[[Rows], Rows] = lambda rows: rows
    conflicts: bool = True


def _sql(*statements: str) -> Callable[[MergingLake, str], None]:
    def changes(lake: MergingLake, name: str) -> None:
        catalog = lake.tables.iceberg_catalog
        for statement in statements:
            sibling(lake.spark, catalog.spark).sql(statement.format(quoted(catalog, name)))

    return changes


def _java(change: Callable[[Any], Any]) -> Callable[[MergingLake, str], None]:
    def changes(lake: MergingLake, name: str) -> None:
        catalog = lake.tables.iceberg_catalog
        change(java_table(sibling(lake.spark, catalog.spark), catalog, name)).commit()

    return changes


def _rolled_back(lake: MergingLake, name: str) -> None:
    snapshot = lake.iceberg(name).metadata.snapshots[0].snapshot_id
    _java(lambda table: table.manageSnapshots().rollbackTo(snapshot))(lake, name)


def _compacted(lake: MergingLake, name: str) -> None:
    rewrite_as_others(lake.spark, lake, name)


def _compacted_and_expired(lake: MergingLake, name: str) -> None:
    rewrite_as_others(lake.spark, lake, name, expires=True)


def _inserted_and_expired(lake: MergingLake, name: str) -> None:
    """Keep all files, but not the snapshot that the merge has read."""
    _sql(_INSERT.format("{}", 30))(lake, name)
    newest = lake.iceberg(name).metadata.snapshots[-1].timestamp_ms
    _java(lambda table: table.expireSnapshots().expireOlderThan(newest + 1).retainLast(1))(lake, name)


def _defaulted(lake: MergingLake, name: str) -> None:
    """Add a column whose default value existing rows have, too."""
    iceberg: Any = lake.spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    text, default = iceberg.types.Types.StringType.get(), iceberg.expressions.Literal.of("d")
    _java(lambda table: table.updateSchema().addColumn("b", text, default))(lake, name)


def _without(*ids: int) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row[0] not in ids]


def _with(id: int, a: str) -> Callable[[Rows], Rows]:
    return lambda rows: [(key, a if key == id else old, n) for key, old, n in rows]


def _and(*more: int) -> Callable[[Rows], Rows]:
    return lambda rows: [*rows, *((id, "z", 0) for id in more)]


_INSERT = "INSERT INTO {} SELECT {}, 'z', 0, '', '', null, false, null, null"
_MERGE = (
    "MERGE INTO {} AS t USING (SELECT 1L AS id UNION SELECT 2L) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a='z'"
)

OTHERS = {
    "deletes a changed row": Other(_sql("DELETE FROM {} WHERE id = 1"), _without(1)),
    "deletes a deleted row": Other(_sql("DELETE FROM {} WHERE id = 4"), _without(4)),
    "deletes another row of the file": Other(_sql("DELETE FROM {} WHERE id = 2"), _without(2)),
    "deletes all rows": Other(_sql("DELETE FROM {} WHERE true"), lambda _: []),
    "changes a changed row": Other(_sql("UPDATE {} SET a = 'z' WHERE id = 5"), _with(5, "z")),
    "changes another row of the file": Other(_sql("UPDATE {} SET a = 'z' WHERE id = 2"), _with(2, "z")),
    "merges": Other(_sql(_MERGE), lambda rows: _with(1, "z")(_with(2, "z")(rows))),
    "inserts the key": Other(_sql(_INSERT.format("{}", 9)), _and(9)),
    "inserts another key": Other(_sql(_INSERT.format("{}", 30)), _and(30), conflicts=False),
    "compacts": Other(_compacted),
    "compacts and expires": Other(_compacted_and_expired),
    "inserts and expires": Other(_inserted_and_expired, _and(30)),
    "adds a column": Other(_sql("ALTER TABLE {} ADD COLUMN (b STRING)"), conflicts=False),
    "adds a column with a default": Other(_defaulted, conflicts=False),
    "drops a column": Other(
        _sql("ALTER TABLE {} DROP COLUMN n", "ALTER TABLE {} ADD COLUMN (n INT)"),
        lambda rows: [(id, a, None) for id, a, _ in rows],
        conflicts=False,
    ),
    "renames a column": Other(
        _sql("ALTER TABLE {} RENAME COLUMN a TO b", "ALTER TABLE {} ADD COLUMN (a STRING)"),
        lambda rows: [(id, None, n) for id, _, n in rows],
        conflicts=False,
    ),
    "widens a column": Other(_sql("ALTER TABLE {} ALTER COLUMN n TYPE BIGINT"), conflicts=False),
    "sets a property": Other(
        _sql("ALTER TABLE {} SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')"), conflicts=False
    ),
    "partitions": Other(_java(lambda table: table.updateSpec().addField("n")), conflicts=False),
}


def _first(table: str) -> list[ChangeEvent]:
    return [change("c", {"id": id}, {"a": "x", "n": id}, pos=id, table=table) for id in range(1, 6)]


def _ours(table: str) -> list[ChangeEvent]:
    """Return events that change, insert and delete rows, and one that keeps a stored value."""
    return [
        change("u", {"id": 1}, {"a": "ours", "n": 10}, pos=20, table=table),
        change("c", {"id": 9}, {"a": "ours", "n": 90}, pos=21, table=table),
        change("d", {"id": 4}, pos=22, table=table),
        change("u", {"id": 5}, {"n": 50}, pos=23, full=False, table=table),
    ]


def _merged(rows: Rows) -> Rows:
    """Return the rows after our events."""
    changed = {1: ("ours", 10), 9: ("ours", 90)}
    known = {id: a for id, a, _ in rows}
    kept = [row for row in rows if row[0] not in {*changed, 4, 5}]
    return [*kept, *((id, *values) for id, values in changed.items()), (5, known.get(5), 50)]


BEFORE: Rows = [(id, "y" if id == 3 else "x", id) for id in range(1, 6)]


def _fill(lake: MergingLake, *tables: str) -> None:
    """Create tables with a deletion vector."""
    for table in tables:
        lake.announce(schema_of(COLUMNS, table=table))
    lake.apply(0, [event for table in tables for event in _first(table)])
    lake.apply(1, [change("u", {"id": 3}, {"a": "y", "n": 3}, pos=10, table=table) for table in tables])


def _rows(lake: MergingLake, name: str = NAME) -> Rows:
    """Return the rows of a table, which are the same for Spark and for pyiceberg."""
    found = lake.stored(name).select(["id", "a", "n"]).to_pylist()
    without_spark = sorted((row["id"], row["a"], row["n"]) for row in found)
    by_spark = sorted(tuple(row) for row in lake.read(name).select("id", "a", "n").collect())
    assert repr(by_spark) == repr(without_spark)
    return without_spark


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as running:
        yield running


SERVED = ["REST", *(pytest.param(name, marks=pytest.mark.faults) for name in ("JDBC", "Hive"))]


@pytest.fixture
def catalog_lake(request: pytest.FixtureRequest, merging_lake: MergingLake) -> Iterator[MergingLake]:
    """A lake with the catalog that the parameter names."""
    lake = merging_lake
    match request.param:
        case "REST":
            name = f"{request.getfixturevalue('rest_server').url}/{lake.warehouse.parent.name}"
            lake.catalog = rest_access(name)
        case "JDBC":
            database = request.getfixturevalue("database")
            lake.catalog = jdbc_access(database, str(lake.warehouse), lake.warehouse.parent.name)
        case "Hive":
            uri = request.getfixturevalue("metastore").url
            lake.catalog = IcebergCatalog(type=CatalogType.HIVE, uri=uri).access(str(lake.warehouse), {}, {})
    lake.use(ICEBERG)
    if request.param != "folders":
        ask_catalog(lake.spark, lake.tables)
    lake.use(ICEBERG)
    yield lake
    if request.param == "Hive":  # all tests share its tables
        session, catalog = sibling(lake.spark, lake.tables.iceberg_catalog.spark), lake.tables.iceberg_catalog
        for name in (NAME, *(f"shop_sales.t{number}" for number in range(THREADS))):
            session.sql(f"DROP TABLE IF EXISTS {quoted(catalog, name)}")


@pytest.mark.parametrize("catalog_lake", ["folders"], indirect=True)
@pytest.mark.parametrize("case", OTHERS)
def test_another_writer(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Another writer commits between reading the files and committing the merge."""
    _fill(catalog_lake, "orders")
    _check(catalog_lake, monkeypatch, OTHERS[case])


@pytest.mark.parametrize("catalog_lake", ["folders"], indirect=True)
@pytest.mark.parametrize("case", ["compacts", "compacts and expires"])
def test_another_writer_before_reading(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Another writer commits after the merge has loaded the table. If it deletes the files that the merge reads, Spark
    merges into the new files.
    """
    _fill(catalog_lake, "orders")
    _check(catalog_lake, monkeypatch, OTHERS[case]._replace(conflicts=case == "compacts"), before=True)


def _check(lake: MergingLake, monkeypatch: pytest.MonkeyPatch, other: Other, *, before: bool = False) -> None:
    def overtaken(*of: Any) -> Any:
        if before:
            other.changes(lake, NAME)
        merged = merge_files(*of)
        if not before:
            other.changes(lake, NAME)
        return merged

    conflict = None
    with monkeypatch.context() as busy:
        busy.setattr(iceberg_spark, "merge_files", overtaken)
        try:
            (report,) = lake.apply(2, _ours("orders"))
        except Overtaken as error:
            conflict = error
        else:
            assert 1 == report.counters.commits, report
    if conflict is None:
        assert repr(sorted(other.rows(_merged(BEFORE)))) == repr(_rows(lake))
        lake.applier = lake.new_applier("checkpoint-1")
        (again,) = lake.apply(2, _ours("orders"))
        assert (1, 0) == (again.counters.skipped, again.counters.commits)
        assert repr(sorted(other.rows(_merged(BEFORE)))) == repr(_rows(lake))
    else:
        assert repr(sorted(other.rows(BEFORE))) == repr(_rows(lake))
        lake.applier = lake.new_applier("checkpoint-1")
        (again,) = lake.apply(2, _ours("orders"))
        assert 1 == again.counters.commits, again
        assert repr(sorted(_merged(other.rows(BEFORE)))) == repr(_rows(lake))
    assert other.conflicts == (conflict is not None)


@pytest.mark.parametrize("catalog_lake", ["folders", *SERVED], indirect=True)
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_rollback(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, *, is_replaced: bool) -> None:
    """The merge is rejected if another writer rolls the table back, or drops and creates it. The table then waits for a
    resume.
    """
    lake = catalog_lake
    _fill(lake, "orders")

    def overtaken(*of: Any) -> Any:
        merged = merge_files(*of)
        if is_replaced:
            _sql("DROP TABLE {0}", "CREATE TABLE {0} (id BIGINT, a STRING, n INT) USING iceberg")(lake, NAME)
        else:
            _rolled_back(lake, NAME)
        return merged

    with monkeypatch.context() as busy:
        busy.setattr(iceberg_spark, "merge_files", overtaken)
        with pytest.raises(Overtaken):
            lake.apply(2, _ours("orders"))
    expected = [] if is_replaced else _with(3, "x")(BEFORE)
    assert expected == _rows(lake)
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(2, _ours("orders"))
    assert 0 == report.counters.commits
    assert expected == _rows(lake)


@pytest.mark.parametrize("catalog_lake", ["folders", *SERVED], indirect=True)
def test_two_sinks(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sinks merge the same rows. One of them is rejected, and no row is duplicated."""
    lake = catalog_lake
    _fill(lake, "orders")
    other = lake.beside(lake.warehouse)
    other.catalog, other.schemas = lake.catalog, lake.schemas
    other.use(lake.rules)
    other.applier = other.new_applier("checkpoint-2")
    started: list[bool] = []

    def overtaken(*of: Any) -> Any:
        merged = merge_files(*of)
        if not started:
            started.append(True)
            other.apply(0, _ours("orders"))
        return merged

    with monkeypatch.context() as busy:
        busy.setattr(iceberg_spark, "merge_files", overtaken)
        with pytest.raises(Overtaken):
            lake.apply(2, _ours("orders"))
    assert sorted(_merged(BEFORE)) == _rows(lake)
    lake.applier = lake.new_applier("checkpoint-1")
    lake.apply(2, _ours("orders"))
    assert sorted(_merged(BEFORE)) == _rows(lake)


@pytest.mark.parametrize("catalog_lake", SERVED, indirect=True)
def test_served_catalogs(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each catalog rejects the merge if another writer changes a changed row."""
    _fill(catalog_lake, "orders")
    _check(catalog_lake, monkeypatch, OTHERS["changes a changed row"])


@pytest.mark.parametrize("catalog_lake", ["folders", *SERVED], indirect=True)
def test_several_tables(catalog_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads merge at the same time, and other writers change two of the tables. The other tables are committed,
    and a repeated batch only writes the rejected ones.
    """
    lake, tables = catalog_lake, [f"t{number}" for number in range(THREADS)]
    others = dict(
        zip(tables, ("changes a changed row", "inserts the key", "inserts another key", "compacts"), strict=True)
    )
    _fill(lake, *tables)
    together = threading.Barrier(THREADS, timeout=PATIENCE_SECONDS)
    location = {lake.iceberg(f"shop_sales.{table}").metadata.table_uuid: table for table in tables}

    def overtaken(metadata: Any, *of: Any) -> Any:
        try:
            merged = merge_files(metadata, *of)
            together.wait()
            table = location[metadata.table_uuid]
            OTHERS[others[table]].changes(lake, f"shop_sales.{table}")
            together.wait()
        except BaseException:
            together.abort()
            raise
        return merged

    events = [event for table in tables for event in _ours(table)]
    with monkeypatch.context() as busy:
        busy.setattr(iceberg_spark, "merge_files", overtaken)
        with pytest.raises(Overtaken):
            lake.apply(2, events)
    for table, case in others.items():
        expected = OTHERS[case].rows(BEFORE if OTHERS[case].conflicts else _merged(BEFORE))
        assert sorted(expected) == _rows(lake, f"shop_sales.{table}")
    lake.applier = lake.new_applier("checkpoint-1")
    commits = {report.table: report.counters.commits for report in lake.apply(2, events)}
    assert {f"shop_sales.{table}": int(OTHERS[case].conflicts) for table, case in others.items()} == commits
    for table, case in others.items():
        assert sorted(_merged(OTHERS[case].rows(BEFORE))) == _rows(lake, f"shop_sales.{table}")
