"""Compute row digests, as `row_digests` defines them, for files and for other tables in a lakehouse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import ConfigError, FatalError, unknown
from spark_sink.events.arrow_values import column
from spark_sink.operations.row_digests import (
    UNFIT,
    ComparedColumns,
    Digest,
    Digests,
    by_range,
    key_hash,
    row_digests,
    summed,
)
from spark_sink.schema.business_view import versions
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableColumn
from spark_sink.tables.protocols import MirrorTable


class RowSource:
    """Rows that are read completely for each comparison.

    Args:
        read: returns the rows, with the columns named as at the source. Strings are converted to the columns' types.
    """

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read

    def names(self) -> set[str]:
        return set(self._read().column_names)

    def can_compare(self, column: TableColumn, *, in_key: bool) -> bool:
        return True

    def ranges(self, columns: ComparedColumns, digits: int) -> dict[str, Digest]:
        return by_range(self._digests(columns), digits)

    def rows(self, columns: ComparedColumns, ranges: Collection[str]) -> Digests:
        digits = len(next(iter(ranges)))
        return {key: one for key, one in self._digests(columns).items() if key_hash(key)[:digits] in ranges}

    def _digests(self, columns: ComparedColumns) -> Digests:
        read, every = self._read(), (*columns.key, *columns.values)
        values = {one.name: _typed(read.column(one.sent_as).combine_chunks(), one.type) for one in every}
        return summed(row_digests(columns, {one: one.name for one in every}, values))


def file_rows(path: Path) -> pa.Table:
    """Return the rows in a CSV or Parquet file, or in a Delta table's folder.

    In a CSV file, an empty field without quotes is NULL.

    Raises:
        ConfigError: the path does not exist, or has another format.
        FatalError: the file cannot be read.
    """
    if not path.exists():
        raise ConfigError(f"--against: {path} does not exist")
    kind = "folder of a Delta table" if path.is_dir() else path.suffix.lower()
    if kind not in _READERS:
        raise ConfigError(unknown("file type", kind, _READERS))
    try:
        found = _READERS[kind](path)
    except (pa.ArrowException, DeltaError, OSError, ValueError) as error:
        # Arrow's own message can quote the file.
        hint = ". Expected UTF-8 CSV with a header line" if kind == ".csv" else ""
        raise FatalError(f"--against: {path} cannot be read: {type(error).__name__}{hint}") from None
    if repeated := [name for name, count in Counter(found.column_names).items() if count > 1]:
        raise FatalError(f"--against: {path} has several columns with the same name: {', '.join(repeated)}")
    return found


def table_rows(table: MirrorTable) -> pa.Table:
    """Return the rows of a mirror, with the columns named as at the source. Columns with several versions are skipped,
    because each row's value is in only one of the versions.
    """
    counts, groups = table.live_keys(), versions(table.shape.columns)
    names = {group[0].name: sent_as for sent_as, group in groups.items() if len(group) == 1}
    stored = table.rows(set(counts))
    rows = [row for key, row in stored.items() for _ in range(counts[key])]
    arrays = {
        sent_as: pa.array([row[name] for row in rows], arrow_type(table.shape.types[name]))
        for name, sent_as in names.items()
    }
    return pa.table(arrays)


def _csv(path: Path) -> pa.Table:
    newlines = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with pyarrow.csv.open_csv(path, parse_options=newlines) as reader:
        texts = dict.fromkeys(reader.schema.names, pa.string())
    convert = pyarrow.csv.ConvertOptions(
        column_types=texts, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return pyarrow.csv.read_csv(path, parse_options=newlines, convert_options=convert)


_READERS: Mapping[str, Callable[[Path], pa.Table]] = {
    ".csv": _csv,
    ".parquet": pyarrow.parquet.read_table,
    "folder of a Delta table": lambda path: DeltaTable(path).to_pyarrow_table(),
}


# PostgreSQL's texts, which Arrow does not know.
_BOOLEANS = {"t": "true", "f": "false"}


def _typed(values: pa.Array, sql: str) -> list[Any]:
    """Return the values of a column's type. Values that the column cannot store are replaced by UNFIT."""
    try:
        found: list[Any] = _converted(values, sql).to_pylist()
        return found
    except (pa.ArrowException, ValueError, OverflowError):
        if len(values) <= 1:
            return [UNFIT] * len(values)
    half = len(values) // 2
    return _typed(values.slice(0, half), sql) + _typed(values.slice(half), sql)


def _converted(values: pa.Array, sql: str) -> pa.Array:
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    if pa.types.is_string(values.type) and sql != "boolean":
        return column(values.to_pylist(), sql)
    if pa.types.is_string(values.type):
        values = pa.array([_BOOLEANS.get(text, text) for text in values.to_pylist()], pa.string())
    return values.cast(arrow_type(sql))
