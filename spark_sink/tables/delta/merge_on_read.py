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

from spark_sink.events.arrow_values import counting
from spark_sink.events.row_numbers import places
from spark_sink.schema.engine_choice import FUSED_FEATURES
from spark_sink.tables.delta.data_files import DataFile, RowGroup, data_files
from spark_sink.tables.delta.deletion_vectors import Place, encoded
from spark_sink.tables.delta.open_table import storage_of
from spark_sink.tables.delta.tables import features_of
from spark_sink.tables.meta_columns import UPDATED_AT
from spark_sink.tables.spark_operations import GONE, WRITTEN, Merge

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
    merge = _Merge(staged, order, pa.schema(table.schema().to_arrow()), storage_of(table))
    found = (merge.found(file) for file in data_files(table, order.bounds))
    changed = [one for one in found if len(one.rows)]
    content, vectors = encoded([pa.concat_arrays([one.file.deleted, one.rows]) for one in changed])
    id = uuid4()
    if changed:
        merge.put(f"deletion_vector_{id}.bin", content)
    by_path = {
        one.file.path: ChangedFile(len(one.file.deleted), vector, vector.rows == one.total)
        for one, vector in zip(changed, vectors, strict=True)
    }
    return MergedFiles(staged.num_rows, merge.write(changed, statistics), id, by_path)


class _Found(NamedTuple):
    """The rows of a file that the merge replaces or removes.

    Args:
        total: the number of all rows in the file.
        rows: the numbers of these rows in the file.
        sources: for each of them, the index of the staged row.
        stored: for each column, the stored values that new rows keep, in order.
    """

    file: DataFile
    total: int
    rows: pa.Int64Array
    sources: pa.Int64Array
    stored: Mapping[str, pa.Array]


class _Merge:
    """A merge of staged rows into a table with this schema and storage."""

    def __init__(self, staged: pa.Table, order: Merge, schema: pa.Schema, storage: fs.FileSystem) -> None:
        self._staged = staged
        self._order = order
        self._schema = schema
        self._storage = storage
        self._keys = [staged.column(name).cast(self._type(name)).combine_chunks() for name in order.key]
        self._values = {name: pc.unique(key) for name, key in zip(order.key, self._keys, strict=True)}
        nothing = pa.repeat(pa.scalar(False), staged.num_rows)
        self._gone = staged.column(GONE).combine_chunks() if order.deletes else nothing
        self._keeping = {name: keeping for name in schema.names if (keeping := self._keeps(name)) is not None}

    def _type(self, name: str) -> pa.DataType:
        return self._schema.field(name).type

    def _keeps(self, name: str) -> pa.BooleanArray | None:
        """Return, for each staged row, whether it keeps the stored value of a column, or None if no row does."""
        if name == UPDATED_AT and self._order.at is not None:
            return None
        if name not in self._order.columns:
            return pc.invert(self._gone)
        if name not in self._order.kept:
            return None
        return pc.invert(pc.or_(self._staged.column(WRITTEN + name).combine_chunks(), self._gone))

    def found(self, file: DataFile) -> _Found:
        """Find the rows that have staged rows."""
        total, numbers, sources = 0, [], []
        stored: dict[str, list[pa.Array]] = {name: [] for name in self._keeping}
        for group in file.row_groups(self._storage):
            rows, source = self._matches(group)
            numbers.append(pc.add(rows, total))
            sources.append(source)
            total += group.rows
            for name, keeping in self._keeping.items():
                wanted = rows.filter(keeping.take(source))
                if len(wanted):
                    stored[name].append(group.column(name, self._type(name), wanted))
        joined = {name: _joined(parts, self._type(name)) for name, parts in stored.items()}
        return _Found(file, total, _joined(numbers, pa.int64()), _joined(sources, pa.int64()), joined)

    def _matches(self, group: RowGroup) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Return the indexes of the rows that have staged rows, and the indexes of these."""
        rows = group.rows_with(self._values)
        if not len(rows):
            return rows, rows
        source = places([group.column(name, self._type(name), rows) for name in self._order.key], self._keys)
        found = pc.is_valid(source)
        return rows.filter(found), source.filter(found)

    def write(self, changed: Sequence[_Found], statistics: Sequence[str]) -> NewFile | None:
        """Write the new rows, and return their file. Return None if there are none."""
        matched = _joined([one.sources for one in changed], pa.int64())
        replacing = matched.filter(pc.invert(self._gone.take(matched)))
        every = counting(self._staged.num_rows)
        inserted = every.filter(pc.invert(pc.or_(pc.is_in(every, value_set=matched), self._gone)))
        stored = [one.stored for one in changed]
        rows = pa.table([self._column(field, replacing, inserted, stored) for field in self._schema], self._schema)
        if not rows.num_rows:
            return None
        path = f"part-00000-{uuid4()}-c000.snappy.parquet"
        pq.write_table(rows, path, filesystem=self._storage)
        return NewFile(path, self._storage.get_file_info(path).size, _statistics(rows, statistics))

    def _column(
        self, field: pa.Field, replacing: pa.Int64Array, inserted: pa.Int64Array, stored: list[Mapping[str, pa.Array]]
    ) -> pa.Array:
        """Return a column of the new rows."""
        name, sources = field.name, pa.concat_arrays([replacing, inserted])
        if name == UPDATED_AT and self._order.at is not None:
            return pa.repeat(pa.scalar(self._order.at, field.type), len(sources))
        if name in self._order.columns:
            staged = self._staged.column(name).cast(field.type).combine_chunks()
        else:
            staged = pa.nulls(self._staged.num_rows, field.type)
        if name not in self._keeping:
            return staged.take(sources)
        kept, keeps = _joined([one[name] for one in stored], field.type), self._keeping[name].take(replacing)
        index = pc.subtract(pc.cumulative_sum(keeps.cast(pa.int64())), 1)
        index = pc.if_else(keeps, index, pc.add(replacing, len(kept)))
        return pa.concat_arrays([kept, staged]).take(pa.concat_arrays([index, pc.add(inserted, len(kept))]))

    def put(self, path: str, content: bytes) -> None:
        """Write a file as a whole."""
        with tempfile.TemporaryDirectory() as scratch:
            written = Path(scratch, "content")
            written.write_bytes(content)
            fs.copy_files(str(written), path, destination_filesystem=self._storage)


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


def _joined(parts: Sequence[pa.Array], type: pa.DataType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], type)
