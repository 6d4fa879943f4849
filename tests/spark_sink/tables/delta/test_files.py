"""Reading the files of a Delta table without an Arrow dataset."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_sink.tables.delta.files import DataFiles, whole


def test_small_files_are_read_like_a_dataset(tmp_path: Path) -> None:
    """The table has several files, of which the first lacks a column, and a column that cannot be NULL."""
    first = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("set", pa.list_(pa.string())), ("a.b", pa.string())]
    )
    rows = [{"id": n, "set": ["x", None], "a.b": "名"} for n in range(5)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, first))
    second = first.append(pa.field("at", pa.timestamp("us", "UTC")))
    more = [{"id": n, "set": None, "a.b": None, "at": datetime(2026, 1, n, tzinfo=UTC)} for n in range(5, 8)]
    write_deltalake(tmp_path, pa.Table.from_pylist(more, second), mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    files = DataFiles(table)
    assert (2, 8) == (len(files.sizes), files.rows)
    batches = list(whole(table, files.sizes, pa.schema(table.schema().to_arrow()), 2))
    assert max(batch.num_rows for batch in batches) == 2
    expected = table.to_pyarrow_table().sort_by("id")
    assert expected == pa.Table.from_batches(batches).sort_by("id")
    assert expected.schema == batches[0].schema


def test_files_are_listed_once_per_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    files = DataFiles(table)
    assert files.listed() is files.listed()
    write_deltalake(table, pa.table({"id": [2, 3]}), mode="append")
    assert (2, 3) == (len(files.sizes), files.rows)
