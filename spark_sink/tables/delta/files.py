"""Read the Delta table files that might contain some keys. If deltalake cannot provide a table as an Arrow dataset,
read it through deltalake's query engine or file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.fs import DeltaStorageHandler

from spark_sink.schema.column_types import has_statistics
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.delta.open_table import literal
from spark_sink.tables.reach import Bounds, Reach

Types = Mapping[str, pa.DataType]


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
        yield _cast({name: batch.column(name) for name in types}, types, batch.num_rows)


def by_file(table: DeltaTable, types: Types, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Read the columns file by file. If column types were widened, older files still contain the narrower types."""
    storage = fs.PyFileSystem(DeltaStorageHandler(table.table_uri))
    for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        if not _may_hold(action, bounds):
            continue
        with storage.open_input_file(action["path"]) as opened:
            file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
            present = [name for name in file.schema_arrow.names if name in types]
            for batch in file.iter_batches(columns=present):
                yield _cast({name: batch.column(name) for name in present}, types, batch.num_rows)


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


def _may_hold(action: Mapping[str, object], bounds: Bounds) -> bool:
    """Return whether a file might contain rows between the bounds, according to its statistics."""
    for name, (low, high) in bounds.items():
        least, greatest = action.get(f"min.{name}"), action.get(f"max.{name}")
        if least is not None and greatest is not None and (greatest < low or least > high):  # type: ignore[operator]
            return False
    return True


def _cast(columns: Mapping[str, pa.Array], types: Types, rows: int) -> pa.RecordBatch:
    """Add NULL for columns that a file lacks because they were added later."""
    arrays = [columns[name].cast(type) if name in columns else pa.nulls(rows, type) for name, type in types.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(types.items())))


def _named(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else literal(value)
