"""Merge staged rows into an Iceberg table without Spark. One new file has the new rows, and deletion vectors remove the
rows that they replace.

The result equals the result of Spark's MERGE (`spark_sql.merge_statement`), which writes all tables that this module
does not support. As with Spark, a changed row keeps its row id. An interrupted or rejected merge leaves files that no
snapshot names. Maintenance deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import DecimalType, NestedField

from spark_sink.schema.layout import WriteMode
from spark_sink.tables.iceberg.data_files import (
    CHANGED_BY,
    CHANGED_BY_FIELD,
    FIELD_ID,
    ROW_ID,
    ROW_ID_FIELD,
    IcebergFile,
    StoredColumn,
    Unsupported,
)
from spark_sink.tables.iceberg.open_table import SQL_TYPES, stored_type, types_of
from spark_sink.tables.meta_columns import UPDATED_AT
from spark_sink.tables.reach import Bounds, Values
from spark_sink.tables.row_merge import FoundRows, RowMerge
from spark_sink.tables.spark_operations import Merge

_FORMAT_VERSION = 3

# The maximum total size of a table's files in bytes, and the maximum numbers of its data files and rows. Spark merges
# into other tables, because it reads files on all cores. Well compressed files can have many rows, and the driver keeps
# the keys of a whole row group in memory.
_MOST = {"total-files-size": 1_000_000_000, "total-data-files": 1_000, "total-records": 20_000_000}

# The maximum number of digits in a number that is read from a table's metadata. No 64-bit number has more.
_DIGITS = 19

_CODEC, _LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
_CODECS = {name: name for name in ("zstd", "gzip", "snappy")} | {"uncompressed": "none"}

# Iceberg's default codec. Its level is Spark's default level. For another codec, Spark may reject a level.
_ZSTD, _ZSTD_LEVEL, _ZSTD_LEVELS = "zstd", "3", frozenset(map(str, range(1, 23)))

# The properties whose values are followed or cannot matter here. A merge adds a single file of any size, and always has
# the strictest isolation level. A table can also have properties with these prefixes, which Iceberg follows itself.
_WRITING = frozenset(
    {
        *(f"write.{change}.{what}" for change in ("merge", "update", "delete") for what in ("mode", "isolation-level")),
        *(f"write.{change}distribution-mode" for change in ("", "merge.", "update.", "delete.")),
        *("write.format.default", "write.target-file-size-bytes", "write.data.path", "write.folder-storage.path"),
        *(_CODEC, _LEVEL, "write.summary.partition-limit"),
    }
)
_WRITTEN_BY_ICEBERG = ("write.metadata.", "write.manifest.", "write.object-storage.")

# Iceberg's metadata columns. Spark cannot read a table that has a column with such a name.
_RESERVED = frozenset({ROW_ID, CHANGED_BY, "_file", "_pos", "_deleted", "_spec_id", "_partition"})

_FLOATING = frozenset({"float", "double"})

# The maximum number of rows in a new file. Arrow would write more rows into several row groups.
_MOST_ROWS = 1 << 26


class UncommittedMerge(NamedTuple):
    """The result of a merge that is not yet committed.

    Args:
        added: the content of a data file with the new rows, or None if there are none.
        vectors: the numbers of all rows that the table no longer contains, by the path of the data file.
    """

    added: pa.Buffer | None
    vectors: Mapping[str, pa.Int64Array]


def can_merge(metadata: TableMetadata, order: Merge) -> bool:
    """Return whether this module can merge rows into the table, with the result of Spark's MERGE.

    The table must have all columns that the merge writes. Spark's MERGE reports a column that someone has dropped.

    No key column may contain floating-point numbers, because 0.0 equals -0.0 in SQL, but not in Arrow. For the same
    reason, no key of the rows may be NULL.
    """
    columns, fields = types_of(metadata), metadata.schema().fields
    written = {**order.columns, **({} if order.at is None else {UPDATED_AT: "timestamp"})}
    return (
        metadata.format_version == _FORMAT_VERSION
        and _follows(metadata.properties)
        and len(metadata.partition_specs) == 1
        and not metadata.spec().fields
        and _is_small(metadata)
        and metadata.sort_order().is_unsorted
        and all(columns.get(name) == sql for name, sql in written.items())
        and all(map(_is_plain, fields))
        and len({name.lower() for name in columns} | _RESERVED) == len(fields) + len(_RESERVED)
        and len(set(sanitize_column_names(metadata.schema()).column_names)) == len(fields)
        and _FLOATING.isdisjoint(order.columns[name] for name in order.key)
    )


def _is_small(metadata: TableMetadata) -> bool:
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return True
    totals = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return all(_is_number(totals.get(name, "")) and int(totals[name]) <= most for name, most in _MOST.items())


def _is_number(text: str) -> bool:
    """Return whether a property of a table, which anyone can have written, is a natural number of a usual size."""
    return text.isdecimal() and len(text) <= _DIGITS


def _follows(properties: Mapping[str, str]) -> bool:
    """Return whether this module writes files as a table's properties demand."""
    writing = {name for name in properties if name.startswith("write.") and not name.startswith(_WRITTEN_BY_ICEBERG)}
    codec = properties.get(_CODEC, _ZSTD)
    return (
        writing <= _WRITING
        and properties.get("write.merge.mode") == WriteMode.MERGE_ON_READ
        and properties.get("write.format.default", "parquet") == "parquet"
        and codec in _CODECS
        and (_LEVEL not in properties or (codec == _ZSTD and properties[_LEVEL] in _ZSTD_LEVELS))
        and not any(name.startswith(("encryption.", "schema.name-mapping.")) for name in properties)
    )


def _is_plain(field: NestedField) -> bool:
    """Return whether a column accepts NULL, has no default, and has a type that a mirror can have."""
    is_known = isinstance(field.field_type, DecimalType) or type(field.field_type) in SQL_TYPES
    return is_known and not field.required and field.initial_default is None and field.write_default is None


def reach_as_json(order: Merge) -> Any:
    """Return the condition that all rows of a merge satisfy, in Iceberg's JSON."""
    return _all([*_within(order.bounds), *_among(order.values)])


def _within(bounds: Bounds) -> Iterable[Any]:
    for name, (low, high) in bounds.items():
        yield {"type": "gt-eq", "term": name, "value": low}
        yield {"type": "lt-eq", "term": name, "value": high}


def _among(values: Values) -> Iterable[Any]:
    for name, some in values.items():
        yield {"type": "in", "term": name, "values": list(some)}


def _all(conditions: list[Any]) -> Any:
    found: Any = True
    for condition in conditions:
        found = condition if found is True else {"type": "and", "left": found, "right": condition}
    return found


def merge_files(
    metadata: TableMetadata, storage: FileIO, files: Iterable[IcebergFile], staged: pa.Table, order: Merge
) -> UncommittedMerge:
    """Merge staged rows into a table with these data files.

    Args:
        files: all files that might contain a key of the staged rows.

    Raises:
        Unsupported: only Spark can merge the rows.
    """
    types = types_of(metadata)
    columns = {
        field.name: StoredColumn(field.field_id, stored_type(types[field.name])) for field in metadata.schema().fields
    } | {ROW_ID: StoredColumn(ROW_ID_FIELD, pa.int64())}
    merge = RowMerge(staged, order, pa.schema([(name, column.type) for name, column in columns.items()]))
    changed: list[FoundRows] = []
    vectors: dict[str, pa.Int64Array] = {}
    for file in files:
        deleted = file.deleted(storage)
        found = merge.found(file.row_groups(storage, deleted, columns))
        if len(found.rows):
            changed.append(found)
            vectors[file.path] = pa.concat_arrays([deleted, found.rows])
    rows = merge.rows(changed)
    _check(rows)
    return UncommittedMerge(_parquet(metadata, rows, columns) if rows.num_rows else None, vectors)


def _check(rows: pa.Table) -> None:
    """Check that Iceberg gets correct metrics of a file with these rows.

    Iceberg needs the number of NaN values, and a Parquet file does not contain it. Without the number, `DELETE … WHERE
    x < 10` would drop a whole file whose other values are smaller.

    Raises:
        Unsupported: the rows contain NaN, or are too many for one row group.
    """
    floating = (column for column in rows.columns if pa.types.is_floating(column.type))
    if rows.num_rows > _MOST_ROWS or any(pc.any(pc.is_nan(column)).as_py() for column in floating):
        raise Unsupported


def _parquet(metadata: TableMetadata, rows: pa.Table, columns: Mapping[str, StoredColumn]) -> pa.Buffer:
    """Return a file with these rows. Each column has its field id, and a name that Parquet's readers accept.

    The file has one row group. Arrow omits the bounds of a column in a row group with a long text, and Iceberg would
    take the bounds of the other row groups for those of the file.
    """
    names = [*sanitize_column_names(metadata.schema()).column_names, ROW_ID, CHANGED_BY]
    written = [*columns.values(), StoredColumn(CHANGED_BY_FIELD, pa.int64())]
    fields = [
        pa.field(name, column.type, metadata={FIELD_ID: str(column.field)})
        for name, column in zip(names, written, strict=True)
    ]
    content = [*rows.columns, pa.nulls(rows.num_rows, pa.int64())]
    codec = metadata.properties.get(_CODEC, _ZSTD)
    level = int(metadata.properties.get(_LEVEL, _ZSTD_LEVEL)) if codec == _ZSTD else None
    file = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(content, schema=pa.schema(fields)),
        file,
        compression=_CODECS[codec],
        compression_level=level,
        row_group_size=rows.num_rows,
        store_decimal_as_integer=True,
        store_schema=False,
    )
    return file.getvalue()
