"""Read a lakehouse table just as its readers do: every row and every column, without a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.table import StaticTable


def selected_by_readers(folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """Return each reader's name, and the result of its `SELECT * FROM` the table."""
    if not DeltaTable.is_deltatable(str(folder)):
        yield "pyiceberg", StaticTable.from_metadata(str(folder)).scan().to_arrow()
        return
    table = DeltaTable(str(folder))
    yield "deltalake", table.to_pyarrow_table()
    with duckdb.connect() as connection:
        # DuckDB's own reader for Delta tables has to be downloaded. The data set makes DuckDB read the same files.
        connection.register("stored", table.to_pyarrow_dataset())
        yield "DuckDB", connection.sql("SELECT * FROM stored").to_arrow_table()


def own_columns_in_between(names: Sequence[str]) -> list[str]:
    """Return a line for each column of the source that comes after one of the sink's columns."""
    rest = dropwhile(lambda name: not name.startswith("_cdc"), names)
    return [f"the column {name} is after the sink's columns" for name in rest if not name.startswith("_cdc")]
