"""Tables that somebody rolled back or removed behind the sink's back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.spark.session import sibling
from spark_sink.table_report import Parked
from spark_sink.tables.iceberg.spark_catalog import java_table
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, rewrite_as_others

ORDERS, ITEMS = "shop_sales.orders", "shop_sales.items"
SCHEMA = schema_of({"id": "int64", "name": "string"})
ITEM = schema_of({"id": "int64", "name": "string"}, table="items")

each_mode = pytest.mark.parametrize("mode", Mode)


def _written(lake: Lake, mode: Mode = Mode.MIRROR) -> None:
    """Apply two batches of two tables."""
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(TableRules(modes={"*": mode}))
    for batch in (0, 1):
        _apply(lake, batch)


def _apply(lake: Lake, batch: int) -> dict[str, object]:
    """Apply one more row of each table, and return the outcome by table."""
    events = [
        change("c", {"id": batch}, {"name": "a"}, pos=batch + 1, schema=SCHEMA),
        change("c", {"id": batch}, {"name": "b"}, pos=batch + 1, schema=ITEM, table="items"),
    ]
    return {report.table: report.outcome for report in lake.apply(batch, events)}


def _set_back(lake: Lake) -> None:
    """Undo the last batch as a user would, with RESTORE or a rollback."""
    if lake.tables.format(ORDERS) is Format.DELTA:
        table = DeltaTable(lake.path())
        table.restore(table.version() - 1)
        return
    assert isinstance(lake, MergingLake)
    catalog = lake.tables.iceberg_catalog
    older = lake.iceberg().metadata.snapshots[-2].snapshot_id
    java_table(sibling(lake.spark, catalog.spark), catalog, ORDERS).manageSnapshots().rollbackTo(older).commit()


def _put_copy_back(lake: Lake, copy: Path) -> None:
    shutil.rmtree(lake.path())
    shutil.copytree(copy, lake.path())


def _remove(lake: Lake) -> None:
    """Remove a table as a mistaken `rm` or a DROP in its catalog does."""
    if lake.catalog is None:
        shutil.rmtree(lake.path())
    else:
        assert isinstance(lake, MergingLake)
        session = sibling(lake.spark, lake.tables.iceberg_catalog.spark)
        session.sql(f"DROP TABLE {lake.catalog.name}.{ORDERS}")


def _ids(lake: Lake, table: str) -> list[int]:
    return sorted(lake.stored(table).column("id").to_pylist())


@each_mode
def test_a_table_that_was_set_back_is_parked(lake_of_format: Lake, mode: Mode) -> None:
    """A rolled-back table is parked at its next event, and the other table continues. A resume is final."""
    lake = lake_of_format
    _written(lake, mode)
    _set_back(lake)
    outcomes = _apply(lake, 2)
    parked = outcomes[ORDERS]
    assert isinstance(parked, Parked)
    assert "the table shop_sales.orders was rolled back" in parked.refusal
    assert [("TABLE_SET_BACK", 0)] == lake.parked()
    assert ([0], [0, 1, 2]) == (_ids(lake, ORDERS), _ids(lake, ITEMS))
    assert "done" == lake.command("resume", ORDERS).state
    assert [0, 2] == _ids(lake, ORDERS)
    _apply(lake, 3)
    assert ([0, 2, 3], []) == (_ids(lake, ORDERS), lake.parked())


def test_at_a_start_a_table_that_was_set_back_is_parked_without_an_event(lake_of_format: Lake) -> None:
    """A start parks the table once. A resume accepts the table as it is, even if no event waits."""
    lake = lake_of_format
    _written(lake)
    _set_back(lake)
    for resumed in (False, True):
        lake.use(lake.rules)
        lake.actions().park_changed()
        assert ([] if resumed else [("TABLE_SET_BACK", None)]) == lake.parked()
        lake.command("resume", ORDERS)


def test_a_copy_of_before_is_parked(lake_of_format: Lake, tmp_path: Path) -> None:
    """A table whose folder is restored from last night's backup is parked."""
    lake = lake_of_format
    if lake.catalog is not None:
        pytest.skip("a catalog does not follow a folder")
    _written(lake)
    shutil.copytree(lake.path(), tmp_path / "copy")
    _apply(lake, 2)
    _put_copy_back(lake, tmp_path / "copy")
    assert isinstance(_apply(lake, 3)[ORDERS], Parked)
    assert [("TABLE_SET_BACK", 0)] == lake.parked()


@each_mode
def test_a_table_that_is_gone_is_parked(lake_of_format: Lake, mode: Mode) -> None:
    """The table is not recreated with later rows only. The start logs that it is missing but parks nothing, since its
    source may no longer send events.
    """
    lake = lake_of_format
    _written(lake, mode)
    _remove(lake)
    lake.use(lake.rules)
    lake.actions().park_changed()
    assert [] == lake.parked()
    parked = _apply(lake, 2)[ORDERS]
    assert isinstance(parked, Parked)
    assert "the table shop_sales.orders no longer exists" in parked.refusal
    assert [("TABLE_GONE", 0)] == lake.parked()
    assert lake.tables.open(ORDERS) is None
    assert [0, 1, 2] == _ids(lake, ITEMS)
    # After a resume without a rebuild, the table has only later events.
    assert "done" == lake.command("resume", ORDERS).state
    _apply(lake, 3)
    assert ([2, 3], []) == (_ids(lake, ORDERS), lake.parked())


@pytest.mark.parametrize("start", [False, True], ids=["running", "at a start"])
def test_commits_of_others_are_no_step_back(lake_of_format: Lake, start: bool) -> None:
    """Compaction and cleanup by other programs do not count as a rollback, with and without the older snapshots."""
    lake = lake_of_format
    _written(lake)
    for batch, change_files in enumerate(_by_others(lake), start=2):
        change_files()
        if start:
            lake.use(lake.rules)
            lake.actions().park_changed()
        _apply(lake, batch)
        assert [] == lake.parked()
        assert list(range(batch + 1)) == _ids(lake, ORDERS)


def _by_others(lake: Lake) -> list[Callable[[], object]]:
    if isinstance(lake, MergingLake):
        spark, both = lake.spark, (False, True)
        return [lambda expires=expires: rewrite_as_others(spark, lake, expires=expires) for expires in both]
    table = DeltaTable(lake.path())
    return [
        lambda: DeltaTable(lake.path()).optimize.compact(),
        lambda: DeltaTable(lake.path()).vacuum(0, dry_run=False, enforce_retention_duration=False),
        lambda: DeltaTable(lake.path()).create_checkpoint(),
        table.cleanup_metadata,
    ]


def test_a_renamed_table_is_not_missed(lake_of_format: Lake) -> None:
    """After a rename, events go to another table, and the old one can be removed."""
    lake = lake_of_format
    _written(lake)
    lake.use(lake.rules, {"shop/sales//orders": "shop_sales.renamed"})
    _remove(lake)
    lake.actions().park_changed()
    _apply(lake, 2)
    assert ([], [2]) == (lake.parked(), _ids(lake, "shop_sales.renamed"))


def test_a_damaged_table_keeps_no_start_from_looking_at_others(lake: Lake) -> None:
    """A corrupt log of one table does not stop the start from parking another one that was rolled back."""
    _written(lake)
    _set_back(lake)
    log = Path(lake.path(ITEMS), "_delta_log")
    for file in log.glob("*.json"):
        file.write_text('{"commitInfo')
    lake.actions().park_changed()
    assert {ORDERS} == lake.control.held().keys()
