"""Delta tables as workers use them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_core.table_id import TableId
from spark_sink.errors import Refused
from spark_sink.events.quarantine import COLUMNS
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.delta.mirror import DeltaMirror
from spark_sink.tables.delta.tables import DeltaTables
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, SparkLake

SHAPE = TableShape(TableId("s", "d", None, "t"), (TableColumn("Id", "bigint"), TableColumn("it's", "string")), ("Id",))
NAME = "s_d.t"


def _rows(ids: list[int]) -> TableChanges:
    columns = {"Id": pa.array(ids, pa.int64()), "it's": pa.array(["x"] * len(ids))}
    meta = {"_cdc_scope": "a", "_cdc_pos": "1", "_cdc_incomplete": False}
    filled = {name: pa.array([value] * len(ids)) for name, value in meta.items()}
    filled["_cdc_state"] = pa.array([None] * len(ids), pa.string())
    filled["_cdc_deleted_at"] = pa.array([None] * len(ids), pa.timestamp("us", "UTC"))
    return TableChanges(pa.table({**columns, **filled}), {}, inserts_only=True)


def test_a_table_is_what_was_created(lake: Lake) -> None:
    """The layout with its key and source is read back from the table. Creating it again changes nothing."""
    tables = DeltaTables(str(lake.warehouse))
    assert tables.open(NAME) is None
    lake.ddl.create(NAME, SHAPE)
    lake.ddl.create(NAME, SHAPE)
    opened = tables.open(NAME)
    assert opened is not None
    assert SHAPE == opened.shape
    assert 0 == lake.version(NAME)


def test_a_strangers_table_is_refused(spark_lake: SparkLake) -> None:
    """Tables that the sink did not create, and those with unknown features, are rejected immediately."""
    tables = DeltaTables(str(spark_lake.warehouse))
    DeltaTable.create(spark_lake.path("s_d.other"), pa.schema([("Id", pa.int64())]))
    with pytest.raises(Refused, match="not created by this sink"):
        tables.open("s_d.other")
    spark_lake.ddl.create(NAME, SHAPE)
    unknown = "'delta.feature.variantType' = 'supported'"
    spark_lake.spark.sql(f"ALTER TABLE delta.`{spark_lake.path(NAME)}` SET TBLPROPERTIES ({unknown})")
    assert tables.open(NAME) is not None
    spark_lake.spark.sql(f"ALTER TABLE delta.`{spark_lake.path(NAME)}` ADD COLUMNS (extra variant)")
    with pytest.raises(Refused, match="variantType"):
        tables.open(NAME)


def test_a_name_that_differs_by_case(lake: Lake) -> None:
    """If another table's name or folder differs only in case, the creation fails, and the error has that name."""
    for name in (NAME, "s_d.T", "S_D.t"):
        assert NAME == lake.ddl.create(name, SHAPE)
    assert ["t"] == [path.name for path in lake.warehouse.glob("[sS]_[dD]/[tT]")]


def test_columns_of_others_are_left_alone(spark_lake: SparkLake) -> None:
    """A column added by others is ignored if no event can write its type. Rows are still written."""
    spark_lake.ddl.create(NAME, SHAPE)
    spark_lake.spark.sql(f"ALTER TABLE delta.`{spark_lake.path(NAME)}` ADD COLUMNS (extra map<string,string>)")
    opened = DeltaTables(str(spark_lake.warehouse)).open(NAME)
    assert isinstance(opened, DeltaMirror)
    assert ["Id", "it's"] == list(opened.shape.types)
    opened.write(_rows([1, 2]), Marker("app", 1))
    assert {(1,), (2,)} == opened.marks({(1,), (2,), (3,)}).keys()
    assert {"Id": 2, "it's": "x"} == opened.rows({(2,)})[(2,)]
    again = _rows([2, 3])
    opened.write(again._replace(inserts_only=False), Marker("app", 2))
    assert 3 == len(opened.marks({(1,), (2,), (3,)}))


def test_quarantine_takes_a_batch_once(lake: Lake) -> None:
    """The quarantine table checks its markers before it appends, even for its first version."""
    tables = DeltaTables(str(lake.warehouse))
    arrow = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}
    row = pa.table({name: pa.array([None], arrow[sql]) for name, sql in COLUMNS.items()})
    for marker in (Marker("a", 0), Marker("a", 0), Marker("b", 0), Marker("a", 1)):
        tables.quarantine(row, marker)
    assert 3 == DeltaTable(lake.path("_cdc.quarantine")).to_pyarrow_table().num_rows


def test_opening_a_table_reads_few_commits(lake: Lake) -> None:
    """deltalake writes a checkpoint after every ten commits, so that the cost of a batch does not grow."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    for batch in range(25):
        lake.apply(batch, [change("u", {"id": 1}, {"a": f"{batch}"}, pos=batch, schema=schema)])
    table = "shop_sales.orders"
    last = json.loads((Path(lake.path(table)) / "_delta_log/_last_checkpoint").read_text())
    assert 25 == lake.version(table)
    assert last["version"] >= 25 - 10
