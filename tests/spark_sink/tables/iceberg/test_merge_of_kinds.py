"""Merges without Spark into tables with unusual keys, names, files and histories: each table equals one that Spark's
MERGE gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_sink.config.iceberg_catalog import FOLDERS
from spark_sink.spark.session import sibling
from spark_sink.tables.changes import Marker
from spark_sink.tables.iceberg import spark as iceberg_spark
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import FolderCatalog
from spark_sink.tables.iceberg.data_files import ROW_ID_FIELD
from spark_sink.tables.iceberg.spark import IcebergInSpark
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.reach import BOUNDED
from spark_sink.tables.spark_operations import GONE, WRITTEN, Merge
from spark_sink.tables.staging import Staging

MERGE_ON_READ = {"format-version": "3", "write.merge.mode": "merge-on-read", "write.delete.mode": "merge-on-read"}

# Files with small row groups and without dictionaries. Spark then stores the differences between values.
PLAIN_PAGES = {
    "write.parquet.row-group-size-bytes": "1",
    "write.parquet.row-group-check-min-record-count": "1",
    "write.parquet.row-group-check-max-record-count": "2",
    "write.parquet.dict-size-bytes": "1",
    "write.parquet.page-version": "v2",
}

# Texts that only differ after the bounds of a file end, that need several code units, or that look the same.
TEXTS = ("", "\0", "é", "e\u0301", "x" * 40 + "1", "x" * 40 + "2", "\U0010ffff" * 20, "\uffff", "A", "a", "a ")
KEYS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "boolean": (pa.bool_(), (True, False)),
    "int": (pa.int32(), (0, -1, 2**31 - 1, -(2**31))),
    "bigint": (pa.int64(), (0, -1, 2**63 - 1, -(2**63))),
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), (b"", b"\0", b"\xff" * 20, b"\xff" * 21, b"a")),
    "date": (pa.date32(), (date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31))),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(y, 1, 1, 0, 0, 0, y, UTC) for y in (1, 1500, 1969, 9999)]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(y, 1, 1, 0, 0, 0, y) for y in (1, 1500, 1969, 9999)]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal(text) for text in ("0.00", "-0.01", "9999999.99")]),
    "decimal(18,0)": (pa.decimal128(18, 0), (Decimal(0), Decimal(-(10**18) + 1), Decimal(10**18 - 1))),
    "decimal(38,2)": (pa.decimal128(38, 2), (Decimal("0.00"), Decimal("-0.01"), Decimal(9 * 10**35))),
}

_NAMES = ("😀", "1a", "a b", "ä", "x'y", "a-b", "日", "a.b", "a_x2Eb_", "_pos_", "select", "A", "id ", "a/b#c?d%20")


class Pair:
    """The tables `ours` and `theirs`, which only differ in who merges."""

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = FolderCatalog(str(folder))
        self.session = sibling(spark, self.catalog.spark)
        self._staging = Staging(str(folder), "test")
        self._monkeypatch = monkeypatch
        self._numbers = count(1)

    def create(self, columns: Mapping[str, str], properties: Mapping[str, str]) -> None:
        declared = ", ".join(f"`{name}` {sql}" for name, sql in columns.items())
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in {**MERGE_ON_READ, **properties}.items())
        self.sql(f"CREATE TABLE {{}} ({declared}) USING iceberg TBLPROPERTIES ({listed})")

    def sql(self, statement: str) -> None:
        for table in ("ours", "theirs"):
            self.session.sql(statement.format(f"`{FOLDERS}`.s.{table}"))

    def java(self, change: Callable[[Any], Any]) -> None:
        for table in ("ours", "theirs"):
            change(java_table(self.session, self.catalog, f"s.{table}")).commit()

    def insert(self, rows: pa.Table) -> None:
        """Insert rows as one file. Python's dates, unlike files, have no exact way into Spark."""
        stored = f"{self._staging.warehouse}/{self._staging.folder}/{self._staging.put('s.t', rows)}"
        for table in ("ours", "theirs"):
            self.session.read.parquet(stored).coalesce(1).writeTo(f"`{FOLDERS}`.s.{table}").append()

    def merge(self, types: Mapping[str, str], key: tuple[str, ...], rows: pa.Table) -> None:
        """Merge rows, with their flags, into both tables. The tables must then be equal for pyiceberg."""
        found = {name: tuple(sorted(set(rows.column(name).to_pylist()))) for name in key if types[name] in BOUNDED}
        found = {name: values for name, values in found.items() if values}
        order = Merge(
            path=self._staging.put("s.t", rows),
            columns=dict(types),
            kept=tuple(name.removeprefix(WRITTEN) for name in rows.column_names if name.startswith(WRITTEN)),
            key=key,
            bounds={name: (values[0], values[-1]) for name, values in found.items()},
            values=found,
            inserts_only=False,
            version=0,
            marker=Marker("app", next(self._numbers)),
            deletes=GONE in rows.column_names,
        )
        format = IcebergInSpark(self.catalog, CatalogTraits, self._staging)
        with self._monkeypatch.context() as alone:
            alone.setattr(iceberg_spark, "merge_statement", _not_called)
            format.table(self.session, "s.ours").do(order)
        with self._monkeypatch.context() as by_spark:
            by_spark.setattr(iceberg_spark, "can_merge", lambda *_: False)
            format.table(self.session, "s.theirs").do(order)
        assert self._without_spark("theirs") == self._without_spark("ours")

    def compare(self) -> None:
        """Compare the tables through Spark, with the metrics of all files."""
        assert self.rows("theirs") == self.rows("ours") == self._without_spark("ours")
        assert self._metrics("theirs") == self._metrics("ours")

    def rows(self, table: str) -> list[str]:
        return sorted(map(repr, self.session.sql(f"SELECT * FROM `{FOLDERS}`.s.{table}").toArrow().to_pylist()))

    def _without_spark(self, table: str) -> list[str]:
        found = self.catalog.load(f"s.{table}")
        assert found is not None
        return sorted(repr(row) for row in found.scan().to_arrow().to_pylist())

    def _metrics(self, table: str) -> list[str]:
        """Return the metrics of each file. The order of the rows in a file, and therefore the range of later row ids,
        is not defined.
        """
        bounds = ("lower_bounds", "upper_bounds")
        filtered = ", ".join(f"map_filter({name}, (id, _) -> id != {ROW_ID_FIELD})" for name in bounds)
        named = f"content, record_count, first_row_id, value_counts, null_value_counts, {filtered}"
        return sorted(map(repr, self.session.sql(f"SELECT {named} FROM `{FOLDERS}`.s.{table}.files").collect()))


@pytest.fixture
def pair(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(spark, tmp_path, monkeypatch)


def _not_called(*_: object) -> str:
    raise AssertionError("Spark has merged the rows")


def _rows(types: Mapping[str, str], columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    return pa.table({name: pa.array(columns[name], KEYS[sql][0]) for name, sql in types.items()})


def _flagged(rows: pa.Table, *kept: str) -> pa.Table:
    """Let every second row keep the stored values of some columns."""
    for name in kept:
        rows = rows.append_column(WRITTEN + name, pa.array([row % 2 == 0 for row in range(rows.num_rows)]))
    return rows


def test_keys_of_every_type(pair: Pair) -> None:
    """Merge by each column in turn, and by all of them. The table has each key several times, in a file with
    dictionaries and in a file without.
    """
    keys = {f"of {sql}": sql for sql in KEYS}
    types = {**keys, "v": "int"}
    pair.create(types, PLAIN_PAGES | {"read.parquet.vectorization.enabled": "false"})
    rows = _rows(types, {**_repeated(keys, 24), "v": range(24)})
    pair.insert(rows)
    pair.sql(f"ALTER TABLE {{}} UNSET TBLPROPERTIES ({', '.join(map(repr, PLAIN_PAGES))})")
    pair.insert(rows.slice(0, 15))
    for name, sql in keys.items():
        values = KEYS[sql][1]
        some = values[: max(2, len(values) - 1)]
        made = _rows(types, {**_repeated(keys, len(some)), name: some, "v": range(100, 100 + len(some))})
        pair.merge(types, (name,), _flagged(made, *(other for other in keys if other != name)))
    gone = rows.slice(3, 3).append_column(GONE, pa.array([True, False, False]))
    pair.merge(types, tuple(keys), gone)
    pair.compare()


def _repeated(keys: Mapping[str, str], number: int) -> Mapping[str, Sequence[Any]]:
    return {name: list(islice(cycle(KEYS[sql][1]), number)) for name, sql in keys.items()}


def test_columns_that_changed(pair: Pair) -> None:
    """Keys that were widened, columns that have exchanged their names, and new columns with the names of old ones."""
    nested = "struct<x: int, y: array<int>>"
    pair.create({"id": "int", "d": "decimal(9,2)", "a": "int", "b": "int", "k": nested, "t": "string"}, {})
    pair.sql(
        "INSERT INTO {} VALUES (1, 1.5, 10, 20, named_struct('x', 1, 'y', array(1, 2)), 'old'), "
        "(-2147483648, -1.5, 30, 40, null, 'old'), (3, 0, 1, 2, null, 'old')"
    )
    for change in (
        *("ALTER COLUMN id TYPE BIGINT", "ALTER COLUMN d TYPE DECIMAL(38,2)"),
        *("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b"),
        *("DROP COLUMN k", "ADD COLUMN k STRING FIRST", "DROP COLUMN t", "ADD COLUMN t STRING"),
    ):
        pair.sql(f"ALTER TABLE {{}} {change}")
    types = {"id": "bigint", "d": "decimal(38,2)", "a": "int", "k": "string", "t": "string"}
    zero, half = Decimal("0.00"), Decimal("-1.50")
    for key, ids, decimals in (
        (("id",), [1, -(2**31), 2**40], [zero, half, Decimal(10**35)]),
        (("d", "id"), [3, 2**40, 1, 1], [zero, Decimal(10**35), half, zero]),
        (("k",), [9, 9, 9], [half, half, half]),
    ):
        texts = ["p", "q", "r", "s"][: len(ids)]
        made: dict[str, Sequence[Any]] = {"id": ids, "d": decimals, "a": range(len(ids)), "k": texts, "t": texts}
        pair.merge(types, key, _flagged(_rows(types, made), "a", "t"))
        pair.sql("INSERT INTO {} (id, k) VALUES (5, 'p')")
    pair.compare()


def test_names_and_texts(pair: Pair) -> None:
    types = {"k.ey": "string", "k😀": "int"} | dict.fromkeys(_NAMES, "int")
    pair.create({**types, "theirs.x": "string"}, {})
    texts = ["\0", "\n", '"', "\\", "\u2028", "'", "\r", "a\tb", "`", "😀", "{}", "%"]
    for number in range(3):
        made: dict[str, Sequence[Any]] = {name: [number] * 9 for name in types}
        made |= {"k.ey": texts[number : number + 9], "k😀": [1] * 9}
        pair.merge(types, ("k.ey", "k😀"), _rows(types, made))
    pair.compare()


def test_a_table_that_was_rolled_back(pair: Pair, tmp_path: Path) -> None:
    """The table also has a branch, a tag, other folders and codecs, and metrics for some columns. The first merge finds
    no snapshot.
    """
    types = {"id": "bigint", "v": "string"}
    pair.create(
        types,
        {
            "write.data.path": f"{tmp_path}/else where/ä+b%20c/",
            "write.object-storage.enabled": "true",
            "write.parquet.compression-codec": "gzip",
            "write.metadata.metrics.default": "counts",
            "write.metadata.metrics.column.v": "truncate(1)",
        },
    )
    rows = _rows(types, {"id": [1, 2, 3], "v": ["abc", "b", "c"]})
    pair.merge(types, ("id",), rows)
    pair.java(lambda table: _at_newest(table, "createBranch", "dev"))
    pair.java(lambda table: _at_newest(table, "createTag", "v1"))
    pair.sql("INSERT INTO {}.branch_dev VALUES (1, 'in the branch')")
    pair.sql("INSERT INTO {} VALUES (1, 'rolled back'), (5, 'rolled back')")
    pair.java(lambda table: table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()))
    pair.merge(types, ("id",), rows.slice(0, 0))
    pair.merge(
        types, ("id",), _rows(types, {"id": [2, 5], "v": ["z", "z"]}).append_column(GONE, pa.array([False, True]))
    )
    pair.merge(types, ("v",), _rows(types, {"id": [7], "v": ["z"]}))
    pair.compare()
    pair.sql("DELETE FROM {} WHERE id < 100")
    pair.merge(types, ("id",), rows)
    pair.compare()
    assert pair.rows("theirs.branch_dev") == pair.rows("ours.branch_dev")
    assert 4 == len(pair.rows("ours.branch_dev"))


def _at_newest(table: Any, create: str, name: str) -> Any:
    return getattr(table.manageSnapshots(), create)(name, table.currentSnapshot().snapshotId())
