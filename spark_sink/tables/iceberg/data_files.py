"""The data files of an Iceberg table, read column by column, without the rows that deletion vectors remove. The columns
of a file are found by their field ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from spark_sink.tables.deletion_vectors import decoded_vector
from spark_sink.tables.row_groups import RowGroup, row_groups

# The columns with the id of each row, and with the commit that changed it last, with their field ids. A file lacks them
# if all of its rows are new. A row with NULL gets a new id, and counts as changed by the commit that adds the file.
ROW_ID, ROW_ID_FIELD = "_row_id", 2147483540
CHANGED_BY, CHANGED_BY_FIELD = "_last_updated_sequence_number", 2147483539

# The key of a column's field id in Arrow's metadata.
FIELD_ID = b"PARQUET:field_id"

# The types that a file can have for each type of the table. Iceberg widens types in place.
_NARROWER: Mapping[pa.DataType, frozenset[pa.DataType]] = {
    pa.int64(): frozenset({pa.int32()}),
    pa.float64(): frozenset({pa.float32()}),
    pa.string(): frozenset({pa.large_string(), pa.string_view()}),
    pa.binary(): frozenset({pa.large_binary(), pa.binary_view()}),
}


class Unsupported(Exception):
    """Raised for a table, or one of its files, that only Spark's MERGE can change."""


class StoredColumn(NamedTuple):
    """A column of the table: its field id, and its type."""

    field: int
    type: pa.DataType


class StoredVector(NamedTuple):
    """The deletion vector of a data file. A Puffin file contains it."""

    path: str
    offset: int
    size: int
    rows: int


class IcebergFile(NamedTuple):
    """A data file.

    Args:
        rows: the number of rows in the file, including those that the deletion vector removes.
        first_row_id: the id of the first row. The ids of the other rows follow it.
        vector: None if the table contains all rows.
    """

    path: str
    rows: int
    first_row_id: int
    vector: StoredVector | None

    @classmethod
    def of_task(cls, text: str, spec: int) -> IcebergFile:
        """Return the data file of a scan task, from Iceberg's JSON.

        Args:
            spec: the only partition spec that is supported.

        Raises:
            Unsupported: the file is not a plain Parquet file, or more than a deletion vector removes its rows.
        """
        try:
            return cls._of_task(msgspec.json.decode(text), spec)
        except KeyError:  # another version of Iceberg
            raise Unsupported from None

    @classmethod
    def _of_task(cls, task: Mapping[str, Any], spec: int) -> IcebergFile:
        file, deletes = task["data-file"], task.get("delete-files", [])
        if any("key-metadata" in one or one["spec-id"] != spec for one in (file, *deletes)):
            raise Unsupported
        if file["file-format"].lower() != "parquet" or len(deletes) > 1:
            raise Unsupported
        vectors = [_vector(one, file["file-path"]) for one in deletes]
        return cls(file["file-path"], file["record-count"], file["first-row-id"], next(iter(vectors), None))

    def deleted(self, files: FileIO) -> pa.Int64Array:
        """Return the numbers of the rows that the table no longer contains."""
        if self.vector is None:
            return pa.array([], pa.int64())
        with files.new_input(self.vector.path).open() as opened:
            opened.seek(self.vector.offset)
            content = opened.read(self.vector.size)
        try:
            rows = decoded_vector(content)
        except ValueError:
            raise Unsupported from None
        if len(rows) != self.vector.rows or (len(rows) and rows[-1].as_py() >= self.rows):
            raise Unsupported
        return rows

    def row_groups(
        self, files: FileIO, deleted: pa.Int64Array, columns: Mapping[str, StoredColumn]
    ) -> Iterator[FileRows]:
        """Return the row groups of the file.

        Raises:
            Unsupported: the file has another number of rows, or columns that Arrow might read differently.
        """
        kept = np.ones(self.rows, dtype=bool)
        kept[deleted.to_numpy()] = False

        def names(file: pq.ParquetFile) -> Mapping[str, str]:
            if file.metadata.num_rows != self.rows:
                raise Unsupported
            return _names(file, columns)

        def kept_between(first: int, rows: int) -> pa.BooleanArray | None:
            return pa.array(kept[first : first + rows]) if len(deleted) else None

        first = self.first_row_id
        with files.new_input(self.path).open() as opened:
            for group in row_groups(opened, kept_between, names):
                yield FileRows(group, first)
                first += group.rows


class FileRows(NamedTuple):
    """A row group of a data file, with the ids of its rows.

    Args:
        first_row_id: the id of the first row, unless the file contains another one.
    """

    group: RowGroup
    first_row_id: int

    @property
    def rows(self) -> int:
        return self.group.rows

    def rows_with(self, wanted: Mapping[str, pa.Array]) -> pa.Int64Array:
        return self.group.rows_with(wanted)

    def column(self, name: str, type: pa.DataType, places: pa.Int64Array | None = None) -> pa.Array:
        found = self.group.column(name, type, places)
        if name != ROW_ID:
            return found
        numbers = pa.array(np.arange(self.rows)) if places is None else places
        return pc.coalesce(found, pc.add(numbers, self.first_row_id))


def _vector(file: Mapping[str, Any], of: str) -> StoredVector:
    if file["content"] != "position-deletes" or file["file-format"].lower() != "puffin":
        raise Unsupported
    if file.get("referenced-data-file") != of:
        raise Unsupported
    return StoredVector(file["file-path"], file["content-offset"], file["content-size-in-bytes"], file["record-count"])


def _names(file: pq.ParquetFile, columns: Mapping[str, StoredColumn]) -> Mapping[str, str]:
    """Return the name in the file, for each column of the table that the file has."""
    schema = file.schema_arrow
    if any(file.schema.column(number).physical_type == "INT96" for number in range(len(file.schema))):
        raise Unsupported
    by_id = {int((field.metadata or {}).get(FIELD_ID, -1)): field for field in schema}
    # The ids of nested fields would need care, and without ids, the names have a mapping.
    if -1 in by_id or len(by_id) != len(schema) or len(set(schema.names)) != len(schema):
        raise Unsupported
    found = {name: by_id[column.field] for name, column in columns.items() if column.field in by_id}
    if not all(_is_readable(field.type, columns[name].type) for name, field in found.items()):
        raise Unsupported
    return {name: field.name for name, field in found.items()}


def _is_readable(stored: pa.DataType, type: pa.DataType) -> bool:
    """Return whether a file's type is the table's type, or one that Iceberg widens to it."""
    if pa.types.is_decimal128(stored) and pa.types.is_decimal128(type):
        return bool(stored.scale == type.scale and stored.precision <= type.precision)
    return stored == type or stored in _NARROWER.get(type, ())
