"""The data files of an Iceberg table, read by field id. Spark merges tables with any other files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from spark_sink.tables.deletion_vectors import encoded_vector
from spark_sink.tables.iceberg.data_files import (
    FIELD_ID,
    ROW_ID,
    ROW_ID_FIELD,
    IcebergFile,
    StoredColumn,
    StoredVector,
    Unsupported,
)

FILES = PyArrowFileIO()
COLUMNS = {
    "id": StoredColumn(1, pa.int64()),
    "late": StoredColumn(9, pa.string()),
    ROW_ID: StoredColumn(ROW_ID_FIELD, pa.int64()),
}


def _written(path: Path, **columns: tuple[int | None, pa.Array]) -> IcebergFile:
    """Write a file with small row groups. Its columns have these field ids."""
    fields = [
        pa.field(name, values.type, metadata=None if id is None else {FIELD_ID: str(id)})
        for name, (id, values) in columns.items()
    ]
    arrays = [values for _, values in columns.values()]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path / "file", row_group_size=2)
    return IcebergFile(str(path / "file"), len(arrays[0]), 100, None)


def _read(file: IcebergFile, name: str) -> list[Any]:
    deleted = file.deleted(FILES)
    groups = file.row_groups(FILES, deleted, COLUMNS)
    return [group.column(name, COLUMNS[name].type).to_pylist() for group in groups]


def test_columns_by_id(tmp_path: Path) -> None:
    """A column that was renamed and widened, one that was added later, and one that was dropped and added again."""
    file = _written(tmp_path, old=(1, pa.array([7, 8, 9], pa.int32())), late=(5, pa.array(["x"] * 3)))
    assert [[7, 8], [9]] == _read(file, "id")
    assert [[None, None], [None]] == _read(file, "late")
    assert [[100, 101], [102]] == _read(file, ROW_ID)


def test_ids_that_a_file_has(tmp_path: Path) -> None:
    """Rows that were moved to another file keep their ids. New rows in the same file get the next ones."""
    ids = pa.array([3, None, 5])
    file = _written(tmp_path, id=(1, pa.array([7, 8, 9])), row=(ROW_ID_FIELD, ids))
    assert [[3, 101], [5]] == _read(file, ROW_ID)
    groups = file.row_groups(FILES, file.deleted(FILES), COLUMNS)
    first = [group.column(ROW_ID, pa.int64(), pa.array([0])).to_pylist() for group in groups]
    assert [[3], [5]] == first


@pytest.mark.parametrize(
    "columns",
    [
        {"id": (None, pa.array([1]))},
        {"id": (1, pa.array(["1"]))},
        {"id": (1, pa.array([1], pa.uint64()))},
        {"id": (1, pa.array([1], pa.timestamp("us")))},
        {"id": (1, pa.array([1])), "again": (1, pa.array([1]))},
        {"id": (1, pa.array([1])), "raw": (9, pa.array([b"x"]))},
    ],
)
def test_files_that_spark_reads(tmp_path: Path, columns: dict[str, tuple[int | None, pa.Array]]) -> None:
    with pytest.raises(Unsupported):
        _read(_written(tmp_path, **columns), "id")


def test_another_number_of_rows(tmp_path: Path) -> None:
    file = _written(tmp_path, id=(1, pa.array([1, 2])))
    with pytest.raises(Unsupported):
        _read(file._replace(rows=3), "id")


def test_times_of_96_bits(tmp_path: Path) -> None:
    fields = [
        pa.field("id", pa.int64(), metadata={FIELD_ID: "1"}),
        pa.field("t", pa.timestamp("us"), metadata={FIELD_ID: "2"}),
    ]
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([1], pa.timestamp("us"))], schema=pa.schema(fields))
    pq.write_table(rows, tmp_path / "file", use_deprecated_int96_timestamps=True)
    with pytest.raises(Unsupported):
        _read(IcebergFile(str(tmp_path / "file"), 1, 0, None), "id")


def test_a_deletion_vector(tmp_path: Path) -> None:
    """The vector is at its place in a file with others, and rows that it removes are not found."""
    file = _written(tmp_path, id=(1, pa.array([7, 8, 9])))
    vector = encoded_vector(pa.array([0, 2]))
    (tmp_path / "vectors").write_bytes(b"other" + vector + b"more")
    stored = StoredVector(str(tmp_path / "vectors"), 5, len(vector), 2)
    found = file._replace(vector=stored)
    assert [0, 2] == found.deleted(FILES).to_pylist()
    wanted = {"id": pa.array([7, 8, 9])}
    groups = found.row_groups(FILES, found.deleted(FILES), COLUMNS)
    assert [[1], []] == [group.rows_with(wanted).to_pylist() for group in groups]
    for broken in (stored._replace(offset=4), stored._replace(rows=3)):
        with pytest.raises(Unsupported):
            file._replace(vector=broken).deleted(FILES)
    with pytest.raises(Unsupported):
        found._replace(rows=2).deleted(FILES)


VECTOR = {
    "spec-id": 0,
    "content": "position-deletes",
    "file-path": "v",
    "file-format": "puffin",
    "record-count": 1,
    "referenced-data-file": "f",
    "content-offset": 4,
    "content-size-in-bytes": 40,
}


def _task(**changed: Any) -> dict[str, Any]:
    file = {
        "spec-id": 0,
        "content": "data",
        "file-path": "f",
        "file-format": "parquet",
        "record-count": 3,
        "first-row-id": 0,
    }
    return {"data-file": file | changed, "delete-files": [VECTOR]}


def _other(**changed: Any) -> dict[str, Any]:
    return _task() | {"delete-files": [VECTOR | changed]}


def test_a_task() -> None:
    found = IcebergFile.of_task(json.dumps(_task()), 0)
    assert IcebergFile("f", 3, 0, StoredVector("v", 4, 40, 1)) == found


def _without(name: str, of: str) -> dict[str, Any]:
    """Return a task from an old file, or from another version of Iceberg."""
    task = _task() | {"delete-files": [VECTOR.copy()]}
    del (task["data-file"] if of == "data-file" else task["delete-files"][0])[name]
    return task


@pytest.mark.parametrize(
    "task",
    [
        lambda: _task(**{"file-format": "orc"}),
        lambda: _task(**{"spec-id": 1}),
        lambda: _task(**{"key-metadata": "00"}),
        lambda: _other(content="equality-deletes"),
        lambda: _other(**{"file-format": "parquet"}),
        lambda: _other(**{"referenced-data-file": "other"}),
        lambda: _other(**{"spec-id": 1}),
        lambda: _task() | {"delete-files": [VECTOR, VECTOR]},
        lambda: _without("first-row-id", "data-file"),
        lambda: _without("record-count", "data-file"),
        lambda: _without("content-offset", "delete-files"),
    ],
)
def test_tasks_that_spark_merges(task: Callable[[], dict[str, Any]]) -> None:
    with pytest.raises(Unsupported):
        IcebergFile.of_task(json.dumps(task()), 0)
