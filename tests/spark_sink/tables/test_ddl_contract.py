"""Tables created and changed by deltalake equal those of Spark: the same log, read the same way by both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from cdc_core.table_id import TableId
from spark_sink.errors import FatalError
from spark_sink.events import quarantine
from spark_sink.schema.engine_choice import Engine
from spark_sink.schema.evolution import TableColumn, TableShape, evolve
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.delta.ddl import DeltaDdl, quarantine_properties, table_properties
from spark_sink.tables.delta.spark_ddl import SparkDdl, quoted
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.locations import location
from spark_sink.tables.meta_columns import new_columns
from spark_sink.tables.protocols import TableDdl
from spark_sink.tables.spark_sql import listed
from tests.spark_sink.changes import schema_of
from tests.spark_sink.local import local_ddl

NAME = "s_d.t"
TYPES = (
    *("string", "tinyint", "smallint", "int", "bigint", "decimal(38,10)", "decimal(20,0)", "float", "double"),
    *("boolean", "binary", "date", "timestamp", "timestamp_ntz"),
)
KEY = TableColumn("id", "bigint")
ODD = (TableColumn("a.b", "string"), TableColumn("名", "int", "n"), TableColumn("it's", "string", 'q"`\\'), KEY)
EVERY_TYPE = tuple(TableColumn(f"c{number}", sql) for number, sql in enumerate(TYPES))


def _shape(*columns: TableColumn, key: tuple[str, ...] = ("id",), mode: Mode = Mode.MIRROR) -> TableShape:
    return TableShape(TableId("s", "d", None, "t"), columns, key, mode)


def _add(*steps: tuple[TableColumn, ...], to: tuple[TableColumn, ...] = (KEY,)) -> Callable[[TableDdl], object]:
    def run(ddl: TableDdl) -> None:
        ddl.create(NAME, _shape(*to))
        for columns in steps:
            ddl.add_columns(NAME, columns)

    return run


class CreatingSparkDdl(SparkDdl):
    """Also creates tables through Spark, for comparison with deltalake's."""

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        super().__init__(spark, warehouse)
        self.spark, self.warehouse = spark, warehouse

    def create(self, name: str, shape: TableShape) -> str:
        self._create(name, new_columns(shape), table_properties(shape))
        return name

    def create_quarantine(self) -> None:
        self._create(quarantine.NAME, quarantine.COLUMNS, quarantine_properties())

    def _create(self, name: str, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        declared = ", ".join(f"`{column}` {sql}" for column, sql in columns.items())
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted(location(self.warehouse, name))} ({declared}) USING delta "
            f"TBLPROPERTIES ({listed(properties)})"
        )


def _forbidden() -> TableShape:
    """Return the evolved names for names with characters that Delta Lake forbids."""
    names = [f"a{character}b" for character in " ,;{}()\n\t=`"]
    schema = schema_of({"id": "int64", **dict.fromkeys(names, "string")})
    return evolve(None, TableId("s", "d", None, "t"), [schema]).shape


CASES: Mapping[str, Callable[[TableDdl], object]] = {
    "every type": lambda ddl: ddl.create(NAME, _shape(KEY, *EVERY_TYPE)),
    "odd names": lambda ddl: ddl.create(NAME, _shape(*ODD)),
    "more columns than have statistics": lambda ddl: ddl.create(
        NAME, _shape(*(TableColumn(f"c{n}", "int") for n in range(40)), KEY)
    ),
    "no column with statistics": lambda ddl: ddl.create(NAME, _shape(TableColumn("a.b", "double"), key=("a.b",))),
    "a history": lambda ddl: ddl.create(NAME, _shape(KEY, *ODD[:2], mode=Mode.HISTORY)),
    "a changelog": lambda ddl: ddl.create(NAME, _shape(KEY, key=(), mode=Mode.CHANGELOG)),
    "columns of every type come later": _add(EVERY_TYPE),
    "odd names come later, one after the other": _add(*((column,) for column in ODD[:3])),
    "a column comes to a table of times": _add(
        (TableColumn("a", "string"),), to=(KEY, TableColumn("t", "timestamp_ntz"))
    ),
    "times come alone, and others later": _add(EVERY_TYPE[-1:], EVERY_TYPE[:3], ODD[:3]),
    "a table that is there": lambda ddl: (
        ddl.create(NAME, _shape(KEY)),
        ddl.create(NAME, _shape(TableColumn("other", "string"))),
    ),
    "columns whose names Delta Lake does not take": lambda ddl: ddl.create(NAME, _forbidden()),
    "the quarantine": lambda ddl: (ddl.create_quarantine(), ddl.create_quarantine()),
}


@pytest.mark.parametrize("case", CASES)
def test_tables_are_alike(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """Columns with all their metadata, properties and protocol are the same, and so is what a worker and Spark read."""
    name = quarantine.NAME if case == "the quarantine" else NAME
    found = []
    for folder, ddl in _both(spark, tmp_path):
        CASES[case](ddl)
        found.append({**_described(folder, name), "in Spark": _seen_by_spark(spark, folder, name)})
    assert found[0] == found[1]


def test_what_others_have_said_of_a_table_stays(spark: SparkSession, tmp_path: Path) -> None:
    """Comments and properties that somebody set remain after columns are added."""
    found = []
    for folder, ddl in _both(spark, tmp_path):
        ddl.create(NAME, _shape(KEY, ODD[0]))
        table = quoted(location(str(folder), NAME))
        spark.sql(f"COMMENT ON TABLE {table} IS 'what it is'")
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN `a.b` COMMENT 'of whom'")
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('mine' = 'x', 'delta.enableChangeDataFeed' = 'true')")
        ddl.add_columns(NAME, ODD[1:2])
        ddl.add_columns(NAME, [TableColumn("t", "timestamp_ntz")])
        found.append({**_described(folder, NAME), "in Spark": _seen_by_spark(spark, folder, NAME)})
    assert found[0] == found[1]
    assert ["of whom"] == [column["metadata"].get("comment") for column in found[0]["columns"] if "." in column["name"]]


FEATURES = {
    "deletion vectors": "'delta.enableDeletionVectors' = 'true'",
    "mapped columns": "'delta.columnMapping.mode' = 'name'",
    "widened types": "'delta.enableTypeWidening' = 'true'",
}


@pytest.mark.parametrize("feature", FEATURES)
def test_what_deltalake_does_not_write_is_changed_by_spark(spark: SparkSession, tmp_path: Path, feature: str) -> None:
    """A table with a feature that somebody enabled gets its columns and no other change."""
    found = []
    for folder, ddl in _both(spark, tmp_path):
        ddl.create(NAME, _shape(KEY))
        table = quoted(location(str(folder), NAME))
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({FEATURES[feature]})")
        ddl.add_columns(NAME, ODD[1:2])
        found.append(_seen_by_spark(spark, folder, NAME) | {"protocol": _protocol(folder, NAME)})
    assert found[0] == found[1]


def test_names_that_differ_by_case_are_one_table(tmp_path: Path) -> None:
    """Creating a table that differs in case reports the existing spelling. Other names in such folders work."""
    ddl = local_ddl(tmp_path / "not there yet")
    told = [ddl.create(name, _shape(KEY)) for name in (NAME, NAME, "S_d.T", "s_D.other")]
    assert [NAME, NAME, NAME, "s_D.other"] == told
    logs = [path.parent for path in tmp_path.rglob("_delta_log")]
    assert ["s_D/other", "s_d/t"] == sorted(str(path.relative_to(tmp_path / "not there yet")) for path in logs)


def test_a_table_that_several_create_at_once(tmp_path: Path) -> None:
    """The table is created once, and no sink gets an error."""
    together = Barrier(8)

    def create(_: int) -> str:
        ddl = local_ddl(tmp_path)
        together.wait()
        return ddl.create(NAME, _shape(KEY, *EVERY_TYPE))

    with ThreadPoolExecutor(8) as pool:
        assert [NAME] * 8 == list(pool.map(create, range(8)))
    assert 0 == DeltaTable(location(str(tmp_path), NAME)).version()


class Interrupted:
    """A table that somebody else commits to after each of the first `times` reads."""

    def __init__(self, commit: Callable[[DeltaTable], object], times: int = 1) -> None:
        self._commit, self._left = commit, times

    def __call__(self, path: str) -> DeltaTable:
        table = DeltaTable(path)
        if self._left:
            self._left -= 1
            self._commit(DeltaTable(path))
        return table


def _field(name: str, type: str = "string") -> Field:
    return Field(name, PrimitiveType(type))


OTHERS: Mapping[str, tuple[Callable[[DeltaTable], object], Sequence[str]]] = {
    "rows": (
        lambda table: write_deltalake(table, table.to_pyarrow_table().schema.empty_table(), mode="append"),
        ["id", "a", "n"],
    ),
    "a property": (
        lambda table: table.alter.set_table_properties({"x": "y"}, raise_if_not_exists=False),
        ["id", "a", "n"],
    ),
    "one of the columns": (lambda table: table.alter.add_columns([_field("n")]), ["id", "n", "a"]),
}


@pytest.mark.parametrize("other", OTHERS)
def test_somebody_else_commits_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    """The columns are added to the table in its new state. Existing ones are left unchanged."""
    ddl = local_ddl(tmp_path)
    ddl.create(NAME, _shape(KEY))
    commit, expected = OTHERS[other]
    monkeypatch.setattr("spark_sink.tables.delta.ddl.DeltaTable", Interrupted(commit))
    wanted = [TableColumn("a", "string", "A"), TableColumn("n", "string")]
    ddl.add_columns(NAME, wanted)
    monkeypatch.undo()
    ddl.add_columns(NAME, wanted)
    opened = DeltaTables(str(tmp_path)).open(NAME)
    assert opened is not None
    assert expected == list(opened.shape.types)
    assert "A" == next(column.sent_as for column in opened.shape.columns if column.name == "a")


def test_a_column_that_somebody_adds_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sink reports the different column and stops."""
    ddl = local_ddl(tmp_path)
    ddl.create(NAME, _shape(KEY))
    taken = Interrupted(lambda table: table.alter.add_columns([_field("n", "long")]))
    monkeypatch.setattr("spark_sink.tables.delta.ddl.DeltaTable", taken)
    with pytest.raises(
        FatalError, match=r"another program added the column n to the table s_d\.t with the type bigint"
    ):
        ddl.add_columns(NAME, [TableColumn("n", "string")])


def test_a_table_that_others_change_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some attempts, the sink stops with its own error."""
    ddl = local_ddl(tmp_path)
    ddl.create(NAME, _shape(KEY))
    many = (f"c{number}" for number in range(100))
    busy = Interrupted(lambda table: table.alter.add_columns([_field(next(many))]), times=100)
    monkeypatch.setattr("spark_sink.tables.delta.ddl.DeltaTable", busy)
    with pytest.raises(FatalError, match=r"s_d\.t cannot be created or changed: .*since last commit"):
        ddl.add_columns(NAME, [TableColumn("n", "string")])


def test_a_warehouse_that_takes_no_table(tmp_path: Path) -> None:
    """Errors of deltalake and the storage become an error of the sink that names the table."""
    (tmp_path / "s_d").write_text("a file where a folder is to be")
    with pytest.raises(FatalError, match=r"s_d\.t cannot be created or changed: "):
        local_ddl(tmp_path).create(NAME, _shape(KEY))


def _both(spark: SparkSession, folder: Path) -> list[tuple[Path, TableDdl]]:
    here, there = folder / "spark", folder / "deltalake"
    return [
        (here, CreatingSparkDdl(spark, str(here))),
        (there, DeltaDdl(str(there), SparkDdl(spark, str(there)))),
    ]


# Spark lists them for every table with named features, deltalake only for those that use them. Our tables do not.
_UNUSED = frozenset({"appendOnly", "invariants"})


def _protocol(warehouse: Path, name: str) -> dict[str, Any]:
    protocol = DeltaTable(location(str(warehouse), name)).protocol()
    return {
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "reader": sorted(protocol.reader_features or ()),
        "writer": sorted(set(protocol.writer_features or ()) - _UNUSED),
    }


def _described(warehouse: Path, name: str) -> dict[str, Any]:
    table = DeltaTable(location(str(warehouse), name))
    metadata = table.metadata()
    told = {
        "columns": json.loads(table.schema().to_json())["fields"],
        "properties": metadata.configuration,
        "partitions": metadata.partition_columns,
        "name": (metadata.name, metadata.description),
        "protocol": _protocol(warehouse, name),
    }
    if name != quarantine.NAME:
        opened = DeltaTables(str(warehouse)).open(name)
        assert opened is not None
        assert Engine.FUSED is opened.choice.engine
        told |= {"kind": type(opened), "shape": opened.shape, "choice": opened.choice}
    return told


def _seen_by_spark(spark: SparkSession, warehouse: Path, name: str) -> dict[str, Any]:
    """Return the columns as Spark sees them, with nullability, metadata and visible properties."""
    path = location(str(warehouse), name)
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {quoted(path)}").collect()}
    read = spark.read.format("delta").load(path)
    assert 0 == read.count()
    shown = {key: value for key, value in properties.items() if not key.startswith("delta.feature.")}
    return {"schema": read.schema.jsonValue(), "shown": shown}
