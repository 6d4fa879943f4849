"""Tables are created and changed alike by Spark, as in production, and without it, as in most tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_sink.events import quarantine
from spark_sink.schema.engine_choice import Engine
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_naming import TableId
from spark_sink.schema.table_spec import Mode
from spark_sink.tables.delta.ddl import DeltaDdl
from spark_sink.tables.delta.tables import DeltaTables
from spark_sink.tables.protocols import TableDdl
from tests.spark_sink.local import LocalDdl

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
    "the quarantine": lambda ddl: (ddl.create_quarantine(), ddl.create_quarantine()),
}


@pytest.mark.parametrize("case", CASES)
def test_tables_are_alike(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """Columns with their types, properties, and what a worker makes of the table."""
    found = []
    for folder, ddl in _both(spark, tmp_path):
        CASES[case](ddl)
        found.append(_described(folder, quarantine.NAME if case == "the quarantine" else NAME))
    assert found[0] == found[1]


def test_names_that_no_column_may_have(spark: SparkSession, tmp_path: Path) -> None:
    """Both refuse them: `schema/evolution.py` gives such a column another name."""
    refused = [TableColumn(f"a{character}b", "string") for character in " ,;{}()\n\t="]
    for _, ddl in _both(spark, tmp_path):
        for column in refused:
            with pytest.raises(Exception, match="INVALID_CHARACTERS"):
                ddl.create(NAME, _shape(KEY, column))
        ddl.create(NAME, _shape(KEY))
        for column in refused:
            with pytest.raises(Exception, match="INVALID_CHARACTERS"):
                ddl.add_columns(NAME, [column])


def test_names_that_differ_by_case_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever creates it again is told how it is spelled; another name in a folder that differs by case is its own."""
    found = []
    for folder, ddl in _both(spark, tmp_path):
        told = [ddl.create(name, _shape(KEY)) for name in (NAME, NAME, "S_d.T", "s_D.other")]
        found.append((told, sorted(str(path.relative_to(folder)) for path in folder.rglob("_delta_log"))))
    assert found[0] == found[1]
    assert [NAME, NAME, NAME, "s_D.other"] == found[0][0]


def _both(spark: SparkSession, folder: Path) -> list[tuple[Path, TableDdl]]:
    here, there = folder / "spark", folder / "local"
    return [(here, DeltaDdl(spark, str(here))), (there, LocalDdl(str(there)))]


def _described(warehouse: Path, name: str) -> dict[str, Any]:
    table = DeltaTable(warehouse.joinpath(*name.split(".")))
    told = {
        "columns": json.loads(table.schema().to_json()),
        "properties": table.metadata().configuration,
        "partitions": table.metadata().partition_columns,
    }
    if name != quarantine.NAME:
        opened = DeltaTables(str(warehouse)).open(name)
        assert opened is not None
        assert Engine.FUSED is opened.choice.engine
        told |= {"kind": type(opened), "shape": opened.shape, "choice": opened.choice}
    return told
