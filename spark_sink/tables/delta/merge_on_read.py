"""Merge staged rows into a Delta table without Spark. One new file has the new rows, and deletion vectors remove the
rows that they replace. Only the key columns of the other files are read, and the columns in which new rows keep stored
values.

The result equals the result of Spark's MERGE (`spark_sql.merge_statement`), which writes all tables that this module
does not support. An interrupted merge leaves files that no commit names. `VACUUM` deletes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from spark_sink.schema.engine_choice import FUSED_FEATURES
from spark_sink.tables.delta.data_files import data_files
from spark_sink.tables.delta.deletion_vectors import Place, encoded
from spark_sink.tables.delta.open_table import storage_of
from spark_sink.tables.delta.tables import features_of
from spark_sink.tables.meta_columns import UPDATED_AT
from spark_sink.tables.row_merge import RowMerge
from spark_sink.tables.spark_operations import Merge

# The features that a table can have, the properties that it must have, and the properties that it must not have.
_FEATURES = FUSED_FEATURES | {"deletionVectors"}
_NEEDED = {"delta.enableDeletionVectors": "true"}
_EXCLUDED = {"delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"}

# The metadata that a column can have. Any other metadata is a rule for the column's values.
_METADATA = frozenset({"comment"})

_FLOATING = frozenset({"float", "double"})

# Types whose smallest and greatest values the log represents exactly.
_BOUNDED = (pa.types.is_integer, pa.types.is_string, pa.types.is_date32)

# The maximum length in characters of a text in the log. Delta truncates longer texts.
_LONGEST = 256


class NewFile(NamedTuple):
    """A data file with the new rows, and its statistics as the log stores them."""

    path: str
    size: int
    statistics: str


class ChangedFile(NamedTuple):
    """A data file from which the merge removes rows.

    Args:
        deleted: the number of rows that the file's deletion vector contained before.
        vector: the place of the new deletion vector.
        is_empty: whether no row is left.
    """

    deleted: int
    vector: Place
    is_empty: bool


class MergedFiles(NamedTuple):
    """The result of a merge that is not yet committed.

    Args:
        source_rows: the number of staged rows.
        added: None if there are no new rows.
        vectors: the id of the file with the deletion vectors.
        changed: the changed files, by path.
    """

    source_rows: int
    added: NewFile | None
    vectors: UUID
    changed: Mapping[str, ChangedFile]


def can_merge(table: DeltaTable, order: Merge) -> bool:
    """Return whether this module can merge rows into the table, with the result of Spark's MERGE.

    The table must have all columns that the merge writes. Spark's MERGE reports a column that someone has dropped.

    No key column may contain floating-point numbers, because 0.0 equals -0.0 in SQL, but not in Arrow. For the same
    reason, no key of the rows may be NULL.
    """
    properties = {name: value.lower() for name, value in table.metadata().configuration.items()}
    fields, written = table.schema().fields, {*order.columns, *([] if order.at is None else [UPDATED_AT])}
    return (
        features_of(table) <= _FEATURES
        and _NEEDED.items() <= properties.items()
        and _EXCLUDED.items().isdisjoint(properties.items())
        and not table.metadata().partition_columns
        and written <= {field.name for field in fields}
        and all(field.nullable and field.metadata.keys() <= _METADATA for field in fields)
        and _FLOATING.isdisjoint(order.columns[name] for name in order.key)
    )


def merge_files(table: DeltaTable, staged: pa.Table, order: Merge, statistics: Sequence[str]) -> MergedFiles:
    """Write the files of a merge.

    Args:
        statistics: the columns for which the table keeps statistics.
    """
    merge, storage = RowMerge(staged, order, pa.schema(table.schema().to_arrow())), storage_of(table)
    found = ((file, merge.found(file.row_groups(storage))) for file in data_files(table, order.bounds))
    changed = [(file, rows) for file, rows in found if len(rows.rows)]
    content, vectors = encoded([pa.concat_arrays([file.deleted, rows.rows]) for file, rows in changed])
    id = uuid4()
    if changed:
        _put(storage, f"deletion_vector_{id}.bin", content)
    by_path = {
        file.path: ChangedFile(len(file.deleted), vector, vector.rows == rows.total)
        for (file, rows), vector in zip(changed, vectors, strict=True)
    }
    added = _write(storage, merge.rows([rows for _, rows in changed]), statistics)
    return MergedFiles(staged.num_rows, added, id, by_path)


def _write(storage: fs.FileSystem, rows: pa.Table, statistics: Sequence[str]) -> NewFile | None:
    """Write the new rows, and return their file. Return None if there are none."""
    if not rows.num_rows:
        return None
    path = f"part-00000-{uuid4()}-c000.snappy.parquet"
    pq.write_table(rows, path, filesystem=storage)
    return NewFile(path, storage.get_file_info(path).size, _statistics(rows, statistics))


def _put(storage: fs.FileSystem, path: str, content: bytes) -> None:
    """Write a file as a whole."""
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch, "content")
        written.write_bytes(content)
        fs.copy_files(str(written), path, destination_filesystem=storage)


def _statistics(rows: pa.Table, columns: Sequence[str]) -> str:
    """Return a file's statistics. Readers do not skip the file by a column that has no smallest and greatest value."""
    found = {name: rows.column(name) for name in columns if name in rows.column_names}
    bounded = {name: column for name, column in found.items() if any(is_(column.type) for is_ in _BOUNDED)}
    bounds = {name: _bounds(column) for name, column in bounded.items()}
    told = {name: of for name, of in bounds.items() if of["min"] is not None and len(str(of["max"])) <= _LONGEST}
    return msgspec.json.encode(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: of["min"] for name, of in told.items()},
            "maxValues": {name: of["max"] for name, of in told.items()},
            # For a struct, Delta expects an object with its fields.
            "nullCount": {name: of.null_count for name, of in found.items() if not pa.types.is_struct(of.type)},
            "tightBounds": True,
        }
    ).decode()


def _bounds(column: pa.ChunkedArray) -> Mapping[str, Any]:
    """Return the smallest and the greatest value. Both are None if all values are NULL, or if Python lacks a date."""
    try:
        bounds: Mapping[str, Any] = pc.min_max(column).as_py()
    except OverflowError:
        return {"min": None, "max": None}
    return bounds
