"""The data files of a Delta table, read column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.tables.delta.data_files import DataFile, find, scan
from spark_sink.tables.delta.files import DataFiles, by_file, whole


def test_files_that_deltalake_has_merged(tmp_path: Path) -> None:
    """A merge of deltalake writes string views and binary views, which Arrow cannot pick single values of."""
    types = {"id": pa.int64(), "a": pa.string(), "raw": pa.binary(), "set": pa.list_(pa.string())}
    made = {"id": range(9), "a": map("text {}".format, range(9)), "raw": [b"\xff"] * 9, "set": [["x", None]] * 9}
    rows = pa.table({name: list(values) for name, values in made.items()}, pa.schema(list(types.items())))
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    merge = table.merge(rows.slice(0, 1), "t.id = s.id", source_alias="s", target_alias="t", streamed_exec=False)
    merge.when_matched_update({"a": "'merged'"}).execute()
    wanted = {"id": pa.array([0, 8, 9]), "a": pa.array(["merged", "text 8", "text 7"])}
    found = pa.Table.from_batches(find(DeltaTable(tmp_path), types, {}, wanted))
    others = {"raw": b"\xff", "set": ["x", None]}
    assert [{"id": 0, "a": "merged", **others}, {"id": 8, "a": "text 8", **others}] == found.to_pylist()


@pytest.mark.parametrize("encoding", ["RLE_DICTIONARY", "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """Version 2 of the Parquet format has delta encodings, which make repeated texts as small as a dictionary does."""
    rows = pa.table({"a": ["x"] * 5000 + ["y", None]})
    by_column = None if encoding == "RLE_DICTIONARY" else {"a": encoding}
    pq.write_table(rows, tmp_path / "file", use_dictionary=by_column is None, column_encoding=by_column)
    assert encoding in pq.read_metadata(tmp_path / "file").row_group(0).column(0).encodings
    groups = DataFile("file", None).row_groups(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    found = [group.column("a", pa.string(), pa.array([0, 5000, 5001])).to_pylist() for group in groups]
    assert [["x", "y", None]] == found


def read_whole(table: DeltaTable, types: dict[str, pa.DataType], _: object) -> Iterator[pa.RecordBatch]:
    return whole(table, DataFiles(table).sizes, pa.schema(list(types.items())), 2)


@pytest.mark.parametrize("read", [scan, by_file, read_whole])
def test_a_path_that_the_log_encodes(tmp_path: Path, read: Callable[..., Iterator[pa.RecordBatch]]) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    (file,) = tmp_path.glob("*.parquet")
    log = tmp_path / f"_delta_log/{0:020}.json"
    log.write_text(log.read_text().replace(file.name, quote("a b%20.parquet")))
    file.rename(tmp_path / "a b%20.parquet")
    (batch,) = read(DeltaTable(tmp_path), {"id": pa.int64()}, {})
    assert [{"id": 1}] == batch.to_pylist()
