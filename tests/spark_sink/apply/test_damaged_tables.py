"""A table that cannot be opened, read, written or changed is parked, and the other tables continue."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_sink.apply.existing_tables import check_tables
from spark_sink.config.table_rules import TableRules
from spark_sink.operations.status import status
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.table_report import Done, Parked
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

ORDERS, ITEMS = "shop_sales.orders", "shop_sales.items"
SCHEMA = schema_of({"id": "int64", "name": "string"})
ITEM = schema_of({"id": "int64", "name": "string"}, table="items")


def _apply(lake: Lake, batch: int) -> dict[str, object]:
    """Change the row of each table, and return the outcomes by table."""
    kind = "u" if batch else "c"
    events = [
        change(kind, {"id": 1}, {"name": f"a{batch}"}, pos=batch + 1, schema=SCHEMA),
        change(kind, {"id": 1}, {"name": f"b{batch}"}, pos=batch + 1, schema=ITEM, table="items"),
    ]
    return {report.table: report.outcome for report in lake.apply(batch, events)}


def _written(lake: Lake, mode: Mode) -> None:
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(TableRules(modes={"*": mode}))
    _apply(lake, 0)


def _names(lake: Lake, table: str) -> list[str]:
    return sorted(lake.stored(table).column("name").to_pylist())


def _moved(path: Path) -> Callable[[], None]:
    """Move a file or a folder away, and return how to put it back."""
    away = path.with_name(f"{path.name}.away")
    path.rename(away)
    return lambda: _back(away, path)


def _back(away: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    away.rename(path)


def _without_data(lake: Lake) -> Callable[[], None]:
    """Remove a data file, as a lifecycle rule or somebody's VACUUM does."""
    return _moved(next(Path(lake.path()).rglob("*.parquet")))


def _torn(lake: Lake) -> Callable[[], None]:
    """Cut off the newest entry of the table's log."""
    folder = Path(lake.path(), "_delta_log" if lake.tables.format(ORDERS) is Format.DELTA else "metadata")
    newest = max(folder.glob("*.json"), key=lambda path: (len(path.name), path.name))
    whole = newest.read_bytes()
    back = _moved(newest)
    newest.write_bytes(whole[: len(whole) // 2])
    return back


_DAMAGES = [(mode, damage) for mode in Mode for damage in (_without_data, _torn)]
# Appending to a changelog reads no file.
_DAMAGES.remove((Mode.CHANGELOG, _without_data))


@pytest.mark.parametrize(("mode", "damage"), _DAMAGES)
def test_one_damaged_table(lake_of_format: Lake, mode: Mode, damage: Callable[[Lake], Callable[[], None]]) -> None:
    """Its events wait. After the repair and a resume, both tables are equal to their sources."""
    lake = lake_of_format
    _written(lake, mode)
    repair = damage(lake)
    outcomes = _apply(lake, 1)
    assert isinstance(outcomes[ITEMS], Done)
    assert isinstance(outcomes[ORDERS], Parked)
    assert [("TABLE_DAMAGED", 0)] == lake.parked()
    assert "b1" in _names(lake, ITEMS)
    assert isinstance(_apply(lake, 2)[ITEMS], Done)
    assert "failed" == lake.command("resume").state
    repair()
    done = lake.command("resume")
    assert "done" == done.state, done.error
    _apply(lake, 3)
    assert (["a3"] if mode is Mode.MIRROR else ["a0", "a1", "a2", "a3"]) == _names(lake, ORDERS)


def test_parking_a_damaged_table(lake_of_format: Lake) -> None:
    """An operator can park it before its next event, also if it cannot be opened. The status shows it."""
    _written(lake_of_format, Mode.MIRROR)
    _torn(lake_of_format)
    shown = status(lake_of_format.tables, "test", lake_of_format.applier.pattern)
    assert [ITEMS, ORDERS] == [table["table"] for table in shown["tables"]]
    check_tables([ITEMS, ORDERS], lake_of_format.tables, lake_of_format.rules)
    done = lake_of_format.command("park")
    assert "done" == done.state, done.error
    assert isinstance(_apply(lake_of_format, 1)[ITEMS], Done)


def test_the_storage_is_away(lake: Lake) -> None:
    """If no table can be read, none is parked: the batch fails, and the next attempt continues."""
    _written(lake, Mode.MIRROR)
    away = lake.warehouse.with_name("away")
    lake.warehouse.rename(away)
    with pytest.raises(Exception, match=r"."):
        _apply(lake, 1)
    shutil.rmtree(lake.warehouse, ignore_errors=True)
    away.rename(lake.warehouse)
    assert [] == lake.parked()
    outcomes = _apply(lake, 1)
    assert {Done} == {type(outcome) for outcome in outcomes.values()}


@pytest.mark.parametrize(
    "name", ["_delta_log", "_DELTA_LOG", "metadata", "A" * 256, "é" * 200, ";" * 70, "a.b", "", "..", "_cdc", "\x00"]
)
def test_names(lake: Lake, name: str) -> None:
    """Any name of a table becomes a table, and does not disturb another one."""
    lake.announce(ITEM)
    odd = lake.announce(schema_of({"id": "int64", "name": "string"}, table=name))
    for batch in (0, 1):
        kind = "u" if batch else "c"
        events = [
            change(kind, {"id": 1}, {"name": f"a{batch}"}, pos=batch + 1, schema=odd, table=name),
            change(kind, {"id": 1}, {"name": f"b{batch}"}, pos=batch + 1, schema=ITEM, table="items"),
        ]
        outcomes = {report.table: report.outcome for report in lake.apply(batch, events)}
        assert [Done()] * 2 == [*outcomes.values()]
    assert [{"id": 1, "name": "b1"}] == lake.rows(ITEMS)
    (written,) = outcomes.keys() - {ITEMS}
    assert [{"id": 1, "name": "a1"}] == lake.rows(written)


@pytest.mark.parametrize("name", ["a\x00b", "\x01", "tab\t", "\x7f"])
def test_columns(lake_of_format: Lake, name: str) -> None:
    """Any name of a column becomes a column."""
    schema = lake_of_format.announce(schema_of({"id": "int64", name: "string"}))
    assert [Done()] == [
        report.outcome
        for report in lake_of_format.apply(0, [change("c", {"id": 1}, {name: "x"}, pos=1, schema=schema)])
    ]
    assert ["x"] == [value for row in lake_of_format.rows() for key, value in row.items() if key != "id"]


@pytest.mark.parametrize("name", ["shop_sales", "SHOP_Sales", "shop_sales.orders.more", "Shop_sales.ORDERS.more"])
def test_no_table_is_inside_another(lake: Lake, name: str) -> None:
    """The first one keeps the folder, whatever the case of the names."""
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(TableRules(), {"shop/sales//items": name})
    lake.apply(0, [change("c", {"id": 1}, {"name": "a0"}, pos=1, schema=SCHEMA)])
    outcomes = _apply(lake, 1)
    assert Done() == outcomes[ORDERS]
    parked = outcomes[name]
    assert isinstance(parked, Parked)
    assert f"{name} and {ORDERS} would be stored in the same folder" in parked.refusal
    assert ["a1"] == _names(lake, ORDERS)


def test_a_table_too_many(lake: Lake) -> None:
    """It is parked, and the others continue. With a higher limit, `resume` writes what was parked."""
    lake.announce(SCHEMA)
    lake.announce(ITEM)
    lake.use(TableRules(max_tables=1))
    lake.apply(0, [change("c", {"id": 1}, {"name": "a0"}, pos=1, schema=SCHEMA)])
    outcomes = _apply(lake, 1)
    assert Done() == outcomes[ORDERS]
    parked = outcomes[ITEMS]
    assert isinstance(parked, Parked)
    assert "the sink has reached its limit of 1 tables; raise tables.max_tables" in parked.refusal
    assert ["a1"] == _names(lake, ORDERS)
    lake.use(TableRules(max_tables=2))
    assert lake.command("resume", ITEMS).error is None
    assert 1 == len(_names(lake, ITEMS))


def test_a_new_table_waits_for_the_operator(each_lake: Lake) -> None:
    """Its events wait in order until `resume` creates it. Tables that exist continue, and a restart changes nothing."""
    each_lake.announce(SCHEMA)
    each_lake.announce(ITEM)
    each_lake.apply(0, [change("c", {"id": 1}, {"name": "a0"}, pos=1, schema=SCHEMA)])
    each_lake.use(TableRules(parks_new=True))
    for batch in (1, 2):
        outcomes = _apply(each_lake, batch)
        assert Done() == outcomes[ORDERS]
        each_lake.use(TableRules(parks_new=True))
    assert each_lake.tables.open(ITEMS) is None
    (first, *_) = each_lake.control.parked.held().values()
    assert f"the table is new (tables.new); to accept it, run spark-sink resume {ITEMS}" == first.detail
    assert each_lake.command("resume", ITEMS).error is None
    assert 1 == len(_names(each_lake, ITEMS))
    assert Done() == _apply(each_lake, 3)[ITEMS]


def test_the_limit_of_tables_counts_only_tables_that_exist(lake: Lake) -> None:
    """Of tables that wait for an operator, none exists yet. The command is ready for a shell."""
    other = "shop_sales.other~20~table"
    lake.use(TableRules(parks_new=True, max_tables=1))
    schemas = [schema_of({"id": "int64", "name": "string"}, table=name) for name in ("orders", "other table")]
    for schema in schemas:
        lake.announce(schema)
    lake.apply(0, [change("c", {"id": 1}, {"name": "a"}, pos=1, table=one.table, schema=one) for one in schemas])
    details = {name: cause.detail for name, cause in lake.control.parked.held().items()}
    accept = "the table is new (tables.new); to accept it, run spark-sink resume"
    assert {ORDERS: f"{accept} {ORDERS}", other: f"{accept} '{other}'"} == details
    assert lake.command("resume", ORDERS).error is None
    assert "its limit of 1 tables" in (lake.command("resume", other).error or "")


def test_a_delete_with_a_former_key(lake: Lake) -> None:
    """Only an update can change a key. The event goes to quarantine, and the rows that it names are incomplete."""
    lake.announce(SCHEMA)
    lake.apply(0, [change("c", {"id": n}, {"name": "a"}, pos=n, schema=SCHEMA) for n in (1, 2)])
    (report,) = lake.apply(1, [change("d", {"id": 2}, None, pos=3, key_old={"id": 1})])
    assert Done() == report.outcome
    assert [("OPERATION_UNKNOWN", 0)] == [one[:2] for one in lake.quarantine()]
    flags = dict(zip(*(lake.stored().column(name).to_pylist() for name in ("id", "_cdc_incomplete")), strict=True))
    assert {1: True, 2: True} == flags
