"""Read the Delta table files that might contain some keys. If deltalake cannot provide a table as an Arrow dataset,
read it through deltalake's query engine or file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from spark_sink.schema.column_types import has_statistics
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.delta.open_table import literal, storage_of
from spark_sink.tables.reach import Bounds, Reach

Types = Mapping[str, pa.DataType]

# The number of rows in a batch, unless the caller limits it. This is Arrow's default.
_ROWS = 65_536


class DataFiles:
    """The data files of an open table, as the Delta log lists them. They are listed once per table version.

    Args:
        table: the table, whose version changes with each commit.
    """

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._listed: tuple[int, pa.Table] | None = None

    def listed(self) -> pa.Table:
        """Return one row per file, with the columns of `DeltaTable.get_add_actions`."""
        version = self._table.version()
        if self._listed is None or self._listed[0] != version:
            self._listed = version, pa.table(self._table.get_add_actions())
        return self._listed[1]

    @property
    def bytes(self) -> int:
        """Return the total size of the files."""
        return sum(self.listed().column("size_bytes").to_pylist())

    @property
    def rows(self) -> int | None:
        """Return the total number of rows, or None if it is missing from the log for some files."""
        counts = self.listed().column("num_records").to_pylist()
        return None if None in counts else sum(counts)

    @property
    def sizes(self) -> dict[str, int]:
        """Return the size of each file in bytes, by its path, which is encoded like in the log."""
        paths, sizes = (self.listed().column(name).to_pylist() for name in ("path", "size_bytes"))
        return dict(zip(paths, sizes, strict=True))


def by_query(table: DeltaTable, types: Types, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Read the columns through DataFusion, which supports deletion vectors and mapped columns. The result may also
    contain rows outside the bounds.
    """
    ranges = (f"{_named(name)} BETWEEN {_literal(low)} AND {_literal(high)}" for name, (low, high) in bounds.items())
    where = " AND ".join(ranges) or "true"
    selected = ", ".join(map(_named, types))
    sql = f"SELECT {selected} FROM stored WHERE {where}"  # noqa: S608 - quoted
    found = QueryBuilder().register("stored", table).execute(sql)
    for batch in pa.RecordBatchReader.from_stream(found):
        yield cast({name: batch.column(name) for name in types}, _schema(types), batch.num_rows)


def by_file(table: DeltaTable, types: Types, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Read the columns file by file. If column types were widened, older files still contain the narrower types."""
    storage = storage_of(table)
    for path in paths_between(pa.table(table.get_add_actions(flatten=True)), bounds):
        with storage.open_input_file(unquote(path)) as opened:
            yield from _batches(opened, _schema(types))


def whole(table: DeltaTable, sizes: Mapping[str, int], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """Read small files of a table without partitions. Each file is one request.

    An Arrow dataset returns the same, but costs three times as much as reading a small file.

    Args:
        sizes: see `DataFiles`.
        schema: the columns to read.
        rows: the maximum number of rows in a batch.
    """
    decoded = {unquote(path): size for path, size in sizes.items()}
    storage = storage_of(table, decoded)
    for path in decoded:
        with storage.open_input_file(path) as opened:
            content = opened.read()
        yield from _batches(pa.BufferReader(content), schema, rows)


def _batches(opened: pa.NativeFile, schema: pa.Schema, rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
    wanted = set(schema.names)
    present = [name for name in file.schema_arrow.names if name in wanted]
    # Selecting all columns by name adds a quarter to the time for a small file.
    columns = None if present == file.schema_arrow.names else present
    for batch in file.iter_batches(rows, columns=columns, use_threads=False):
        yield cast({name: batch.column(name) for name in present}, schema, batch.num_rows)


def near(table: DeltaTable, shape: TableShape, reach: Reach) -> ds.Dataset:
    """Return the files that might contain rows within `reach`, according to their statistics in the log, if these are
    reliable.

    Arrow must not filter inside the files, because a merge writes string views into them, and Arrow cannot compare the
    statistics of string views.
    """
    files = table.to_pyarrow_dataset()
    condition = ds.scalar(True)
    for name, (least, greatest, _) in reach.items():
        if has_statistics(shape.types[name]):
            condition &= (ds.field(name) >= least) & (ds.field(name) <= greatest)
    chosen = list(files.get_fragments(filter=condition))
    return ds.FileSystemDataset(chosen, files.schema, files.format, files.filesystem)


def paths_between(actions: pa.Table, bounds: Bounds) -> list[str]:
    """Return the encoded paths of the files that might contain rows between the bounds, according to their statistics.

    The statistics of other columns are not converted to Python. A large table has many of them, and Python lacks some
    of the dates.

    Args:
        actions: one row per file, with the columns of `DeltaTable.get_add_actions(flatten=True)`.
    """
    needed = {"path", *(f"{end}.{name}" for name in bounds for end in ("min", "max"))}
    found = actions.select([name for name in actions.column_names if name in needed])
    return [action["path"] for action in found.to_pylist() if _may_hold(action, bounds)]


def _may_hold(action: Mapping[str, object], bounds: Bounds) -> bool:
    for name, (low, high) in bounds.items():
        least, greatest = action.get(f"min.{name}"), action.get(f"max.{name}")
        if least is not None and greatest is not None and (greatest < low or least > high):  # type: ignore[operator]
            return False
    return True


def cast(columns: Mapping[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Add NULL for columns that a file lacks because they were added later."""
    found = ((of, columns.get(of.name)) for of in schema)
    # Casting to the same type is slower than comparing the types.
    arrays = [
        pa.nulls(rows, of.type) if one is None else one if one.type == of.type else one.cast(of.type)
        for of, one in found
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(types: Types) -> pa.Schema:
    return pa.schema(list(types.items()))


def _named(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else literal(value)
