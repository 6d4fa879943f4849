"""A worker's part for tables that Spark writes, and how it reads files of narrower types, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.changes import Deletion, Marker, TableChanges
from spark_sink.tables.delta.files import Bounds, by_file, by_query
from spark_sink.tables.delta.history import DeltaHistory
from spark_sink.tables.delta.log import DeltaLog
from spark_sink.tables.delta.mirror import DeltaMirror
from spark_sink.tables.delta.staged import StagedMirror
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.meta_columns import (
    META_COLUMNS,
    OWN_COLUMNS,
)
from spark_sink.tables.spark_operations import Clear, Merge, RaiseFloors, Retire
from spark_sink.tables.table_properties import KEY_PROPERTY, MODE_PROPERTY, TABLE_PROPERTY

NAME = "s_d.t"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """An empty table, created as the sink would."""
    return _created(tmp_path, {"id": "bigint", "n": "int", **META_COLUMNS})


def _created(tmp_path: Path, columns: dict[str, str], mode: Mode = Mode.MIRROR) -> Path:
    properties = {KEY_PROPERTY: '["id"]', TABLE_PROPERTY: '["s","d",null,"t"]'}
    properties |= {} if mode == Mode.MIRROR else {MODE_PROPERTY: mode.value}
    types = {"array<string>": pa.list_(pa.string())}
    schema = pa.schema([(name, types.get(sql) or arrow_type(sql)) for name, sql in columns.items()])
    created = DeltaTable.create(tmp_path / "s_d" / "t", schema)
    created.alter.set_table_properties(properties, raise_if_not_exists=False)
    return tmp_path


def _opened(warehouse: Path, app: str = "app") -> StagedMirror:
    table = DeltaTables(str(warehouse), app, EngineRules({"s_*": Engine.SPARK})).open(NAME)
    assert isinstance(table, StagedMirror)
    return table


def _changes(ids: list[int]) -> TableChanges:
    columns = {"id": ids, "n": [1] * len(ids), "_cdc_scope": ["a"] * len(ids), "_cdc_pos": ["1"] * len(ids)}
    sql = {"id": "bigint", "n": "int", **META_COLUMNS}
    rows = {name: pa.array(columns.get(name, [None] * len(ids)), arrow_type(type)) for name, type in sql.items()}
    return TableChanges(pa.table(rows), {"n": pa.array([id != ids[0] for id in ids])}, inserts_only=False)


def test_a_worker_only_stages(warehouse: Path) -> None:
    """The rows are in a file, with a flag for each column that some rows leave unchanged. The order describes the
    write. The table gets no commit. The first marker is that of the commit, and others are added if the table lacks
    them.
    """
    table = _opened(warehouse)
    table.write(_changes([5, 2**40, -3]), Marker("m", 1), Marker("day", 0), Marker("long ago", -7))
    (merge,) = table.orders
    assert 1 == DeltaTable(warehouse / "s_d" / "t").version()
    assert isinstance(merge, Merge)
    assert (Marker("day", 0),) == merge.others
    assert (("n",), ("id",), {"id": (-3, 2**40)}, Marker("m", 1)) == (merge.kept, merge.key, merge.bounds, merge.marker)
    (file,) = warehouse.glob("_cdc/staging/*/s_d.t/*.parquet")
    assert merge.path == f"s_d.t/{file.name}"
    staged = pq.read_table(file)
    assert [*merge.columns, "_cdc_written_n"] == staged.column_names
    assert [5, 2**40, -3, False, True, True] == [*staged["id"].to_pylist(), *staged["_cdc_written_n"].to_pylist()]


def test_what_lies_under_floors(warehouse: Path) -> None:
    """Rows are cleared or retired by order, if the order would affect any."""
    rows = {"id": [1, 2], "_cdc_scope": ["a", "b"], "_cdc_pos": ["3", "3"], "_cdc_deleted_at": [None, 1]}
    sql = {"id": "bigint", "n": "int", **META_COLUMNS}
    stored = {name: pa.array(rows.get(name, [None, None]), arrow_type(type)) for name, type in sql.items()}
    write_deltalake(warehouse / "s_d" / "t", pa.table(stored), mode="append")
    met = {("a", "3"): (True, True), ("a", "2"): (False, False), ("b", "3"): (True, False), ("c", "9"): (False, False)}
    for (scope, floor), (clears, retires) in met.items():
        table, floors, marker, now = _opened(warehouse), {scope: floor}, Marker("m", 1), Deletion(7, None, 8)
        table.raise_floors(floors)
        assert (clears, retires) == (table.clear(marker), table.soft_delete_below_floor(now, marker))
        expected = [RaiseFloors(floors), *[Clear(floors, marker)] * clears, *[Retire(floors, now, marker)] * retires]
        assert expected == table.orders


@pytest.mark.parametrize(
    ("mode", "kind"), [(Mode.MIRROR, StagedMirror), (Mode.HISTORY, DeltaHistory), (Mode.CHANGELOG, DeltaLog)]
)
def test_modes(tmp_path: Path, mode: Mode, kind: type[object]) -> None:
    """Whatever the configuration says, the worker writes all modes except mirrors."""
    _created(tmp_path, {"id": "bigint", **OWN_COLUMNS[mode]}, mode)
    table = DeltaTables(str(tmp_path), "app", EngineRules({"*": Engine.SPARK})).open(NAME)
    assert table is not None
    engine = Engine.SPARK if mode == Mode.MIRROR else Engine.FUSED
    assert (kind, engine, []) == (type(table), table.choice.engine, list(table.orders))


def test_as_of(warehouse: Path) -> None:
    """An earlier state is read by the engine, and is empty before the table existed."""
    tables = DeltaTables(str(warehouse), "app", EngineRules({"*": Engine.SPARK}))
    now = datetime.now(UTC) + timedelta(seconds=1)
    assert (StagedMirror, None) == (type(tables.as_of(NAME, now)), tables.as_of(NAME, now - timedelta(days=1)))


def test_as_of_the_time_of_a_commit(warehouse: Path) -> None:
    """A version is read from the millisecond of its commit onward."""
    tables = DeltaTables(str(warehouse), "app", EngineRules({"*": Engine.SPARK}))
    newest = DeltaTable(warehouse / "s_d" / "t").history()[0]
    found = tables.as_of(NAME, datetime.fromtimestamp(newest["timestamp"] / 1000, UTC))
    assert isinstance(found, StagedMirror)
    assert newest["version"] == found.version


def test_the_name_of_a_file_is_its_content(warehouse: Path) -> None:
    """A repeated task stages the same file. Other rows give another file, and another sink uses another folder."""
    for app, ids in (("app", [1, 2]), ("app", [1, 2]), ("app", [1, 3]), ("other", [1, 2])):
        _opened(warehouse, app).write(_changes(ids))
    assert 3 == len(list(warehouse.glob("_cdc/staging/*/s_d.t/*")))
    assert 2 == len({path.name for path in warehouse.glob("_cdc/staging/*/s_d.t/*")})
    assert 2 == len(list(warehouse.glob("_cdc/staging/*")))


def test_floors_take_no_table_away(tmp_path: Path) -> None:
    """Storing floors with deltalake does not change a table of a named feature."""
    tables = DeltaTables(str(_created(tmp_path, {"id": "bigint", "t": "timestamp_ntz", **META_COLUMNS})))
    table = tables.open(NAME)
    assert isinstance(table, DeltaMirror)
    table.raise_floors({"a": "1"})
    table = tables.open(NAME)
    assert isinstance(table, DeltaMirror)
    assert (Engine.FUSED, {"a": "1"}) == (table.choice.engine, table.floors)


def test_files_of_narrower_types(tmp_path: Path) -> None:
    """Files written before a column was widened or added return the current types. Files whose statistics exclude the
    wanted rows are not read.
    """
    narrow = {"id": pa.int32(), "n": pa.int16(), "d": pa.decimal128(10, 2), "f": pa.float32()}
    values = {"id": [1, 2], "n": [3, None], "d": [Decimal("1.25"), None], "f": [0.5, None]}
    write_deltalake(tmp_path, pa.table({name: pa.array(values[name], type) for name, type in narrow.items()}))
    _declare(tmp_path, {"id": "long", "n": "decimal(12,2)", "d": "decimal(14,4)", "f": "double", "later": "string"})
    sql = {"id": "bigint", "n": "decimal(12,2)", "d": "decimal(14,4)", "f": "double", "later": "string"}
    wide = {name: arrow_type(type) for name, type in sql.items()}
    later = pa.table({name: pa.array([None], type) for name, type in wide.items()})
    write_deltalake(tmp_path, later.set_column(0, "id", pa.array([2**40])), mode="append")
    expected = [
        {"id": 1, "n": Decimal("3.00"), "d": Decimal("1.2500"), "f": 0.5, "later": None},
        {"id": 2, "n": None, "d": None, "f": None, "later": None},
        {"id": 2**40, "n": None, "d": None, "f": None, "later": None},
    ]
    assert expected == sorted(_read(tmp_path, wide, {}), key=itemgetter("id"))
    assert expected[:2] == _read(tmp_path, wide, {"id": (2, 5)})
    assert [] == _read(tmp_path, wide, {"id": (3, 5)})


def test_a_query_gives_the_types_of_the_table(tmp_path: Path) -> None:
    """A query returns the types of the table, for any column name and within the bounds."""
    rows = pa.table({"id": pa.array(["a'b", "b", "c"]), 'x"': pa.array([1, 2, 3], pa.int8())})
    write_deltalake(tmp_path, rows)
    types = {'x"': pa.int8(), "id": pa.string()}
    found = pa.Table.from_batches(by_query(DeltaTable(tmp_path), types, {"id": ("a'b", "b")}))
    assert (pa.schema(list(types.items())), {1, 2}) == (found.schema, set(found.column(0).to_pylist()))


def _read(path: Path, types: dict[str, pa.DataType], bounds: Bounds) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for batch in by_file(DeltaTable(path), types, bounds):
        assert pa.schema(list(types.items())) == batch.schema
        rows += batch.to_pylist()
    return rows


def _declare(path: Path, columns: dict[str, str]) -> None:
    """Make a commit that changes only the columns, like an ALTER TABLE."""
    (first,) = (path / "_delta_log").glob("*.json")
    (metadata,) = [line for line in map(json.loads, first.read_text().splitlines()) if "metaData" in line]
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in columns.items()]
    metadata["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    (path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(metadata) + "\n")
