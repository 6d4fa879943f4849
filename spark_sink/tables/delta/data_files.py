"""The data files of a Delta table, read column by column, without the rows that deletion vectors remove.

deltalake lists the files and decodes the deletion vectors. Its query engine reads such tables too, but takes three
times as long. Its Arrow dataset cannot read them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from spark_sink.tables.delta.files import Types, cast, paths_between
from spark_sink.tables.delta.open_table import storage_of
from spark_sink.tables.reach import Bounds

# In a column chunk, each text takes at least this number of bytes for its length, unless it is in a dictionary or has a
# delta encoding. Arrow cannot read texts with a delta encoding as a dictionary.
_LENGTH = 4


class DataFile(NamedTuple):
    """A data file.

    Args:
        path: the path below the table's folder, encoded like in the log.
        kept: for each row, whether the table still contains it. The table contains all rows beyond the end of the
            array, and all rows if this is None.
    """

    path: str
    kept: pa.BooleanArray | None

    @property
    def deleted(self) -> pa.Int64Array:
        """The numbers of the rows that the table no longer contains."""
        if self.kept is None:
            return pa.array([], pa.int64())
        return pc.indices_nonzero(pc.invert(self.kept)).cast(pa.int64())

    def batches(self, storage: fs.FileSystem, types: Types) -> Iterator[pa.RecordBatch]:
        """Return columns of the rows that the table contains."""
        with storage.open_input_file(unquote(self.path)) as opened:
            file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            schema, first = pa.schema(list(types.items())), 0
            present = [name for name in file.schema_arrow.names if name in types]
            for batch in file.iter_batches(columns=present):
                kept = self._kept(first, batch.num_rows)
                first += batch.num_rows
                found = cast({name: batch.column(name) for name in present}, schema, batch.num_rows)
                yield found if kept is None else found.filter(kept)

    def row_groups(self, storage: fs.FileSystem) -> Iterator[RowGroup]:
        with storage.open_input_file(unquote(self.path)) as opened:
            file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")

            def coded(name: str) -> pq.ParquetFile:
                return pq.ParquetFile(opened, metadata=file.metadata, read_dictionary=[name])

            names, first = set(file.schema_arrow.names), 0
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                yield RowGroup(file, coded, number, names, self._kept(first, rows))
                first += rows

    def _kept(self, first: int, rows: int) -> pa.BooleanArray | None:
        if self.kept is None:
            return None
        known = self.kept.slice(first, rows)
        return pa.concat_arrays([known, pa.repeat(pa.scalar(True), rows - len(known))])


class RowGroup(NamedTuple):
    """A row group of an open file.

    Args:
        coded: opens the file so that a column is read as a dictionary.
        names: the columns in the file.
        kept: see `DataFile`, with one value for each row of the group.
    """

    file: pq.ParquetFile
    coded: Callable[[str], pq.ParquetFile]
    number: int
    names: Collection[str]
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
            return _in_one_piece(self._read(name, self.coded(name)).take(places)).cast(type)
        # A merge of deltalake writes string views, and Arrow cannot take single values from views.
        return _in_one_piece(self._read(name, self.file).cast(type).take(places))

    def _read(self, name: str, file: pq.ParquetFile) -> pa.ChunkedArray:
        return file.read_row_group(self.number, columns=[name]).column(name)

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
            if chunk.path_in_schema == name
        )


def is_readable(table: DeltaTable) -> bool:
    """Return whether the files contain all columns under their own names."""
    metadata = table.metadata()
    is_mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    return not is_mapped and not metadata.partition_columns


def data_files(table: DeltaTable, bounds: Bounds) -> list[DataFile]:
    """Return the files that might contain rows between the bounds, according to the statistics in the log."""
    vectors = pa.table(table.deletion_vectors())
    paths = (uri.removeprefix(table.table_uri) for uri in vectors.column("filepath").to_pylist())
    kept = {path: rows.values for path, rows in zip(paths, vectors.column("selection_vector"), strict=True)}
    actions = pa.table(table.get_add_actions(flatten=True))
    if not kept.keys() <= set(actions.column("path").to_pylist()):
        raise AssertionError("a deletion vector belongs to no file of the table")
    return [DataFile(path, kept.get(path)) for path in paths_between(actions, bounds)]


def scan(table: DeltaTable, types: Types, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Read columns of all rows between the bounds, and possibly of others."""
    storage = storage_of(table)
    for file in data_files(table, bounds):
        yield from file.batches(storage, types)


def find(table: DeltaTable, types: Types, bounds: Bounds, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Read columns of all rows whose key columns each have one of the wanted values. Values of other rows are decoded,
    but not copied.
    """
    storage = storage_of(table)
    for file in data_files(table, bounds):
        for group in file.row_groups(storage):
            rows = group.rows_with(wanted)
            columns = [group.column(name, type, rows) for name, type in types.items()]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(types.items())))


def _in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
