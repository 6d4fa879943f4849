"""The behaviour that every engine and format shares, tested on real tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_core.table_id import TableId
from spark_sink.model.row import Memory, RowMark
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Format
from spark_sink.tables.changes import Deletion, Marker, TableChanges
from spark_sink.tables.delta import rows as delta_rows
from spark_sink.tables.formats import FormatTables, spark_ddl, spark_writer
from spark_sink.tables.meta_columns import META_COLUMNS
from spark_sink.tables.mirror_reader import MirrorReader
from spark_sink.tables.protocols import MirrorTable, TableDdl
from spark_sink.tables.spark_operations import OrderRunner
from tests.spark_sink.conftest import SPARK_MARKS
from tests.spark_sink.local_iceberg import LocalIcebergLake, LocalWriter

COLUMNS = (
    TableColumn("id", "string"),
    TableColumn("a.b", "int"),
    TableColumn("V", "decimal(38,10)"),
    TableColumn("t", "timestamp_ntz"),
)
SHAPE = TableShape(TableId("s", "d", None, "t"), COLUMNS, ("id",))
NAME = "s_d.t"
KEYS = ["a'b", "A'B", "a'b ", "\0", "", "\U0010ffff" * 20, "z" * 5000, "z" * 5000 + "y", 'q"\\n', "${x}"]

Stored = dict[str, Any]


class Tables:
    """The tables of one engine and format. `done` brings a table to the state that a worker reads next."""

    def __init__(self, tables: FormatTables, ddl: TableDdl, writer: OrderRunner) -> None:
        self._tables = tables
        self._writer = writer
        ddl.create(NAME, SHAPE)

    def open(self) -> MirrorTable:
        table = self._tables.open(NAME)
        assert isinstance(table, MirrorTable)
        return table

    def done(self, table: MirrorTable) -> MirrorTable:
        assert {} == self._writer.carry_out({NAME: table.orders})
        return self.open()


def _on_spark(spark: SparkSession, warehouse: str, engine: Engine, format: Format) -> Tables:
    tables = FormatTables(warehouse, "app", EngineRules({"*": engine}), {"*": format})
    return Tables(tables, spark_ddl(spark, tables), spark_writer(spark, tables))


KINDS = ((Engine.FUSED, Format.DELTA), (Engine.SPARK, Format.DELTA), (Engine.SPARK, Format.ICEBERG))
MERGED = "fused delta merged"
PARAMS = (
    pytest.param(None, id="local iceberg"),
    *(pytest.param(kind, id=" ".join(kind), marks=SPARK_MARKS) for kind in KINDS),
    pytest.param(MERGED, id=MERGED, marks=SPARK_MARKS),
)


@pytest.fixture(params=PARAMS)
def tables(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Tables:
    if request.param is None:
        lake = LocalIcebergLake(tmp_path)
        return Tables(lake.tables, lake.ddl, LocalWriter(lake.tables))
    spark = request.getfixturevalue("spark")
    if request.param == MERGED:
        monkeypatch.setattr(delta_rows, "SMALL", -1)  # so that deltalake merges even into a small table
        return _on_spark(spark, str(tmp_path), *KINDS[0])
    return _on_spark(spark, str(tmp_path), *request.param)


def _changes(
    rows: Mapping[str, Stored], *, inserts_only: bool, kept: Mapping[str, list[bool]] | None = None
) -> TableChanges:
    """Return rows by key. Missing values are NULL, and our columns have those of an existing row, written at "1"."""
    meta = {"_cdc_scope": "one", "_cdc_pos": "1", "_cdc_incomplete": False}
    full = [{**meta, **row, "id": key} for key, row in rows.items()]
    sql = {**SHAPE.types, **META_COLUMNS}
    columns = {name: pa.array([row.get(name) for row in full], arrow_type(type)) for name, type in sql.items()}
    return TableChanges(
        pa.table(columns), {name: pa.array(flags) for name, flags in (kept or {}).items()}, inserts_only
    )


def test_what_is_written_is_read(tables: Tables) -> None:
    """Rows with any key are read back, new and existing, full and partial, with their state. Each commit has its
    markers, which are found by name.
    """
    half = {key: {"a.b": n, "t": 1, "_cdc_state": '{"seen":{"two":"7"}}'} for n, key in enumerate(KEYS[::2])}
    table = tables.open()
    assert (None, {}, {}) == (table.applied("m"), table.marks(set()), table.rows({("",)}))
    table.write(_changes(half, inserts_only=True), Marker("m", 0), Marker("cdc.forgotten", 5))
    table = tables.done(table)
    assert (0, 5, None) == (table.applied("m"), table.applied("cdc.forgotten"), table.applied("n"))
    both = {key: {"a.b": 10 + n, "_cdc_pos": f"{n}2", "_cdc_incomplete": n == 1} for n, key in enumerate(KEYS)}
    both[KEYS[2]] |= {"_cdc_deleted_at": 7, "_cdc_state": '{"gap":"3"}'}
    stays = {"a.b": [n != 4 for n in range(len(KEYS))], "t": [False] * len(KEYS)}
    table.write(_changes(both, inserts_only=False, kept=stays), Marker("m", 4097), Marker("cdc.forgotten", 5))
    table = tables.done(table)
    assert (4097, 5) == (table.applied("m"), table.applied("cdc.forgotten"))
    found = table.rows({(key,) for key in [*KEYS, "z"]})
    assert {(key,): (2 if n == 4 else 10 + n, n % 2 == 1) for n, key in enumerate(KEYS)} == {
        key: (row["a.b"], row["t"] is None) for key, row in found.items()
    }
    marks = table.marks({(KEYS[1],), (KEYS[2],), ("unknown",)})
    assert {
        (KEYS[1],): RowMark("one", "12", incomplete=True),
        (KEYS[2],): RowMark("one", "22", deleted=True, memory=Memory(gap="3")),
    } == marks
    assert {"one": "92"} == table.max_positions()


def test_what_is_cleared_and_forgotten(tables: Tables) -> None:
    """Floors are stored. Rows below them are deleted with the truncate's marker. Later rows and other scopes remain,
    and so do deleted rows. If nothing is below the floors, nothing is committed.
    """
    rows_spanning_floor = msgspec.json.encode(Memory(reset="1")).decode()
    rows: dict[str, Stored] = {
        "under": {},
        "other": {"_cdc_scope": "it's", "_cdc_state": '{"seen":{"three":"5"}}'},
        "beyond": {"_cdc_pos": "3"},
        "astride": {"_cdc_pos": "4", "_cdc_state": rows_spanning_floor},
        "dead": {"_cdc_pos": "6", "_cdc_deleted_at": 1_000},
    }
    table = tables.open()
    table.write(_changes(rows, inserts_only=True), Marker("m", 0))
    table = tables.done(table)
    assert {"one": "6", "it's": "1", "three": "5"} == table.max_positions()
    table.raise_floors({"one": "2", "it's": "0"})
    assert ({"one": "2", "it's": "0"}, {("astride",)}) == (table.floors, table.rows_spanning_floor("one"))
    assert table.clear(Marker("m", 1))
    table = tables.done(table)
    assert ({"one": "2", "it's": "0"}, 1) == (table.floors, table.applied("m"))
    assert not table.clear(Marker("m", 2))
    assert {"other", "beyond", "astride", "dead"} == {key for (key,) in table.marks({(key,) for key in rows})}
    assert 1 == table.applied("m")


def test_what_is_retired(tables: Tables) -> None:
    """Only rows below the floors become deleted rows, and they keep their values and positions."""
    rows: dict[str, Stored] = {
        "under": {"a.b": 5, "_cdc_state": '{"seen":{"two":"7"}}', "_cdc_incomplete": True},
        "beyond": {"_cdc_pos": "3"},
        "dead": {"_cdc_deleted_at": 1_000},
    }
    table = tables.open()
    table.write(_changes(rows, inserts_only=True), Marker("m", 0))
    table = tables.done(table)
    table.raise_floors({"one": "2"})
    assert table.soft_delete_below_floor(Deletion(7_000, 8_000, 9_000), Marker("m", 1))
    table = tables.done(table)
    assert (1, {("beyond",)}) == (table.applied("m"), set(table.written()))
    under = table.marks({("under",)})["under",]
    assert (RowMark("one", "1", deleted=True, committed=8_000), 5) == (under, table.rows({("under",)})["under",]["a.b"])
    assert not table.soft_delete_below_floor(Deletion(8_000, None, 9_000), Marker("m", 2))


def _names_in_table(table: MirrorTable) -> set[str]:
    """Return the rows that readers of the table see."""
    assert isinstance(table, MirrorReader)
    return {key for batch in table._scan(["id"]) for key in batch.column("id").to_pylist()}


def test_deleted_rows_leave_the_table(tables: Tables) -> None:
    """A commit removes the rows that it deletes, also if none of them was in the table. They are still found with their
    markers, until their key is inserted again, a truncate covers them, or they expire.
    """
    table = tables.open()
    table.keep_deleted_rows(apart=True)
    rows: dict[str, Stored] = {"a": {"a.b": 1}, "b": {"a.b": 2}, "never": {"_cdc_deleted_at": 900}}
    table.write(_changes(rows, inserts_only=True), Marker("m", 0))
    table = tables.done(table)
    assert ({"a", "b"}, 0) == (_names_in_table(table), table.applied("m"))
    both: dict[str, Stored] = {"a": {"_cdc_pos": "3", "_cdc_deleted_at": 1_000}, "c": {"a.b": 3, "_cdc_pos": "4"}}
    table.write(_changes(both, inserts_only=False), Marker("m", 1))
    table = tables.done(table)
    assert ({"b", "c"}, {("b",), ("c",)}) == (_names_in_table(table), set(table.written()))
    everything = {("a",), ("b",), ("c",), ("d",), ("never",)}
    assert {("a",): True, ("b",): False, ("c",): False, ("never",): True} == {
        key: mark.deleted for key, mark in table.marks(everything).items()
    }
    assert RowMark("one", "3", deleted=True) == table.marks({("a",)})["a",]
    assert {"one": "4"} == table.max_positions()
    absent: dict[str, Stored] = {"never": {"_cdc_pos": "5", "_cdc_deleted_at": 1_100}}
    table.write(_changes(absent, inserts_only=False), Marker("m", 2))
    table = tables.done(table)
    assert ({"b", "c"}, 2, "5") == (
        _names_in_table(table),
        table.applied("m"),
        table.marks({("never",)})["never",].pos,
    )
    again: dict[str, Stored] = {"a": {"a.b": 9, "_cdc_pos": "6"}}
    table.write(_changes(again, inserts_only=False), Marker("m", 3))
    table = tables.done(table)
    assert RowMark("one", "6") == table.marks({("a",)})["a",]
    columns = table.mark_columns(pa.table({"id": ["a", "never", "c"]})).select(["id", "_cdc_pos"]).to_pylist()
    assert {"a": "6", "never": "5", "c": "4"} == {row["id"]: row["_cdc_pos"] for row in columns}
    gone: dict[str, Stored] = {"b": {"_cdc_pos": "7", "_cdc_deleted_at": 2_000}}
    table.forget(2_000)
    table.write(_changes(gone, inserts_only=False), Marker("m", 4))
    table = tables.done(table)
    assert {("a",), ("b",), ("c",)} == table.marks(everything).keys()
    table.raise_floors({"one": "7"})
    assert {("a",), ("c",)} == table.marks(everything).keys()


def test_deleted_rows_move(tables: Tables) -> None:
    """Deleted rows that are in the table leave it with one commit, and return to it with one commit, where they have no
    values. Between the two, another commit is not lost.
    """
    rows: dict[str, Stored] = {"live": {"a.b": 1}, "dead": {"a.b": 2, "_cdc_deleted_at": 900}}
    table = tables.open()
    table.write(_changes(rows, inserts_only=True), Marker("m", 0))
    table = tables.done(table)
    both = table.marks({("live",), ("dead",)})
    table.keep_deleted_rows(apart=True)
    table = tables.done(table)
    assert ({"live"}, both) == (_names_in_table(table), table.marks({("live",), ("dead",)}))
    table.keep_deleted_rows(apart=True)
    assert not table.orders
    later: dict[str, Stored] = {"live": {"_cdc_pos": "2", "_cdc_deleted_at": 901}}
    table.write(_changes(later, inserts_only=False), Marker("m", 1))
    table = tables.done(table)
    assert (set(), 1) == (_names_in_table(table), table.applied("m"))
    both = table.marks({("live",), ("dead",)})
    table.keep_deleted_rows(apart=False)
    table = tables.done(table)
    assert ({"live", "dead"}, both) == (_names_in_table(table), table.marks({("live",), ("dead",)}))
    assert {None} == {row["a.b"] for row in table.rows({("live",), ("dead",)}).values()}
    table.keep_deleted_rows(apart=True)
    table = tables.done(table)
    assert (set(), both) == (_names_in_table(table), table.marks({("live",), ("dead",)}))
