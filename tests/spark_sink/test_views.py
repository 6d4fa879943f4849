"""The view for readers: the snippet of docs/sink.md."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_sink.tables.delta.open_table import SOURCE_PROPERTY
from tests.repository.pages import blocks, page, run, section


@pytest.mark.parametrize(
    ("own", "present", "gone"),
    [
        ("_cdc_deleted_at", pa.scalar(None, pa.timestamp("us", "UTC")), pa.scalar(0, pa.timestamp("us", "UTC"))),
        ("_cdc_current", pa.scalar(True), pa.scalar(False)),
    ],
)
def test_business_view(spark: SparkSession, tmp_path: Path, own: str, present: pa.Scalar, gone: pa.Scalar) -> None:
    """Readers see the columns of the source, each once, and the rows that are there: of a mirror and of a history."""
    (snippet,) = blocks(section(page("sink.md"), "Tables"), "python")
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "n": pa.array([None, 2, 3], pa.int8()),
            "a": pa.array([None, 2, None], pa.int32()),
            "n__v2": pa.array([2**62, None, None], pa.int64()),
            "a__v2": pa.array(["x", None, None]),
            "_cdc_pos": pa.array(["1", "2", "3"]),
            own: pa.array([present.as_py(), gone.as_py(), present.as_py()], present.type),
        }
    )
    sources = {f"{SOURCE_PROPERTY}{name}__v2": name for name in ("n", "a")}
    write_deltalake(tmp_path / "table", rows)
    DeltaTable(tmp_path / "table").alter.set_table_properties(sources, raise_if_not_exists=False)
    view = f"business{own}"
    run(snippet)["business_view"](spark, str(tmp_path / "table"), view)
    seen = spark.table(view)
    assert ["id", "n", "a"] == seen.columns
    assert [(1, 2**62, "x"), (3, 3, None)] == sorted(map(tuple, seen.collect()))
    spark.sql(f"DROP VIEW {view}")
