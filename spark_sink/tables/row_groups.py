"""Read single columns and rows from the row groups of a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# In a column chunk, each text takes at least this number of bytes for its length, unless it is in a dictionary or has a
# delta encoding. Arrow cannot read texts with a delta encoding as a dictionary.
_LENGTH = 4


class StoredRows(Protocol):
    """The rows of a row group, read column by column."""

    @property
    def rows(self) -> int:
        """The number of rows, including those that the table no longer contains."""

    def rows_with(self, wanted: Mapping[str, pa.Array]) -> pa.Int64Array:
        """Return the places of the rows that the table contains, and whose columns each have one of these values."""

    def column(self, name: str, type: pa.DataType, places: pa.Int64Array | None = None) -> pa.Array:
        """Return a column, or its values at some places in the group."""


class RowGroup(NamedTuple):
    """A row group of an open file.

    Args:
        coded: opens the file so that a column is read as a dictionary.
        names: the name in the file, for each column of the table that the file has.
        kept: for each row of the group, whether the table still contains it. The table contains all rows if this is
            None.
    """

    file: pq.ParquetFile
    coded: Callable[[str], pq.ParquetFile]
    number: int
    names: Mapping[str, str]
    kept: pa.BooleanArray | None

    @property
    def rows(self) -> int:
        return int(self.file.metadata.row_group(self.number).num_rows)

    def rows_with(self, wanted: Mapping[str, pa.Array]) -> pa.Int64Array:
        """Return the places of the rows that the table contains, and whose columns each have one of these values."""
        places = None
        for name, values in wanted.items():
            found = pc.is_in(self.column(name, values.type, places), value_set=values)
            if places is None and self.kept is not None:
                found = pc.and_(found, self.kept)
            rows = pc.indices_nonzero(found).cast(pa.int64())
            places = rows if places is None else places.take(rows)
        return places

    def column(self, name: str, type: pa.DataType, places: pa.Int64Array | None = None) -> pa.Array:
        """Return a column, or its values at some places in the group. A column that was added later is NULL."""
        if name not in self.names:
            return pa.nulls(self.rows if places is None else len(places), type)
        if places is None:
            return _in_one_piece(self._read(name, self.file)).cast(type)
        if self._has_dictionary(name):
            return _in_one_piece(self._read(name, self.coded(self.names[name])).take(places)).cast(type)
        # A merge of deltalake writes string views, and Arrow cannot take single values from views.
        return _in_one_piece(self._read(name, self.file).cast(type).take(places))

    def _read(self, name: str, file: pq.ParquetFile) -> pa.ChunkedArray:
        stored = self.names[name]
        return file.read_row_group(self.number, columns=[stored]).column(stored)

    def _has_dictionary(self, name: str) -> bool:
        """Return whether a dictionary contains most of a column's texts. Copying all texts costs more than reading the
        dictionary. Any other column costs more as a dictionary.
        """
        columns = self.file.metadata.row_group(self.number)
        chunks = (columns.column(number) for number in range(columns.num_columns))
        return any(
            chunk.physical_type == "BYTE_ARRAY"
            and chunk.total_uncompressed_size < _LENGTH * chunk.num_values
            and not any(encoding.startswith("DELTA_") for encoding in chunk.encodings)
            for chunk in chunks
            if chunk.path_in_schema == self.names[name]
        )


def same_names(file: pq.ParquetFile) -> Mapping[str, str]:
    """Return the columns of a file that has all columns under the names that the table uses."""
    return {name: name for name in file.schema_arrow.names}


def row_groups(
    opened: pa.NativeFile,
    kept: Callable[[int, int], pa.BooleanArray | None],
    names: Callable[[pq.ParquetFile], Mapping[str, str]] = same_names,
) -> Iterator[RowGroup]:
    """Return the row groups of a file.

    Args:
        names: returns the name in the file, for each column of the table that the file has.
        kept: returns which rows the table still contains, for the first row of a group and its number of rows. The
            table contains all of them if this is None.
    """
    file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")

    def coded(name: str) -> pq.ParquetFile:
        return pq.ParquetFile(opened, metadata=file.metadata, read_dictionary=[name])

    known, first = names(file), 0
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        yield RowGroup(file, coded, number, known, kept(first, rows))
        first += rows


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
