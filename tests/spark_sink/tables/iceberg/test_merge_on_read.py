"""Merges that write deletion vectors without Spark: the table equals the one that Spark's MERGE gives."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.puffin import PuffinFile
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from spark_sink.config.iceberg_catalog import FOLDERS
from spark_sink.errors import FatalError, Overtaken
from spark_sink.schema.layout import SortKey
from spark_sink.spark.session import sibling
from spark_sink.tables import row_merge
from spark_sink.tables.changes import Marker
from spark_sink.tables.deletion_vectors import decoded_vector
from spark_sink.tables.formats import FormatMaintenance
from spark_sink.tables.iceberg import merge_on_read, row_delta
from spark_sink.tables.iceberg import spark as iceberg_spark
from spark_sink.tables.iceberg.catalog_traits import CatalogTraits
from spark_sink.tables.iceberg.catalogs import FolderCatalog, quoted
from spark_sink.tables.iceberg.data_files import IcebergFile
from spark_sink.tables.iceberg.file_layout import sort_by
from spark_sink.tables.iceberg.merge_on_read import can_merge, merge_files
from spark_sink.tables.iceberg.open_table import MARKERS_PROPERTY
from spark_sink.tables.iceberg.puffin import puffin
from spark_sink.tables.iceberg.row_delta import RowDelta
from spark_sink.tables.iceberg.spark import IcebergInSpark
from spark_sink.tables.iceberg.spark_catalog import java_table
from spark_sink.tables.spark_operations import GONE, Merge
from spark_sink.tables.spark_sql import merge_statement
from spark_sink.tables.staging import Staging
from tests.spark_sink.changes import change
from tests.spark_sink.lake import MergingLake, rewrite_as_others
from tests.spark_sink.tables.random_merges import KEY, KEYS, random_merge, random_rows

# The columns that are staged, by Spark's type. The table has more columns, which someone else added.
TYPES = {
    "k": "string",
    "at": "timestamp",
    "n": "bigint",
    "amount": "decimal(38,10)",
    "small": "decimal(9,2)",
    "ratio": "double",
    "f": "float",
    "day": "date",
    "raw": "binary",
    "x.y": "boolean",
    "local": "timestamp_ntz",
    "_cdc_updated_at": "timestamp",
}
SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "n": pa.int64(),
        "amount": pa.decimal128(38, 10),
        "small": pa.decimal128(9, 2),
        "ratio": pa.float64(),
        "f": pa.float32(),
        "day": pa.date32(),
        "raw": pa.binary(),
        "x.y": pa.bool_(),
        "local": pa.timestamp("us"),
        "theirs": pa.string(),
        "renamed": pa.string(),
        "_cdc_updated_at": pa.timestamp("us", "UTC"),
    }
)
VALUES: Mapping[str, Sequence[Any]] = {
    "n": (1, -(2**31), None),
    "amount": (Decimal("0.0000000001"), Decimal("9" * 17), None),
    "small": (Decimal("-0.01"), Decimal("9999999.99"), None),
    "ratio": (0.0, -0.0, float("inf"), None),
    "f": (1.5, float("-inf"), None),
    "day": (date(1, 1, 1), date(9999, 12, 31), None),
    "raw": (b"", b"\0\xff", b"\xff" * 40, None),
    "x.y": (True, False, None),
    "local": (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None),
    "theirs": ("x", "", None),
    "renamed": ("r" * 20, None),
}

# A table before someone widens, renames, drops and adds columns.
BEFORE = {"n": "int", "amount": "decimal(28,10)", "ratio": "float", "theirs": "string", "renamed": "string"}
ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": "1",
    "write.parquet.row-group-check-min-record-count": "1",
    "write.parquet.row-group-check-max-record-count": "3",
}
MERGE_ON_READ = {"format-version": "3"} | {f"write.{change}.mode": "merge-on-read" for change in ("merge", "delete")}


@pytest.fixture
def catalog(tmp_path: Path) -> FolderCatalog:
    return FolderCatalog(str(tmp_path))


@pytest.fixture
def session(spark: SparkSession, catalog: FolderCatalog) -> SparkSession:
    return sibling(spark, catalog.spark)


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


def _name(table: str) -> str:
    return f"`{FOLDERS}`.`s`.`{table}`"


def _rows(rng: random.Random, keys: Sequence[tuple[str, datetime]]) -> pa.Table:
    return random_rows(rng, keys, VALUES, SCHEMA)


def _insert(session: SparkSession, tables: Sequence[str], rows: pa.Table) -> None:
    for table in tables:
        columns = session.table(_name(table)).columns
        typed = session.createDataFrame(rows.rename_columns([name.replace(".", "_") for name in rows.column_names]))
        made = typed.withColumnsRenamed({"x_y": "x.y"}).select(*(f"`{name}`" for name in columns))
        made.coalesce(1).writeTo(_name(table)).append()


def _make(session: SparkSession, rng: random.Random) -> None:
    """Create the tables `ours` and `theirs` with the same files and deletion vectors."""
    both = ("ours", "theirs")
    declared = ", ".join(f"`{name}` {BEFORE.get(name, sql)}" for name, sql in {**TYPES, **BEFORE}.items())
    for table in both:
        session.sql(
            f"CREATE TABLE {_name(table)} ({declared}) USING iceberg "
            f"TBLPROPERTIES ({_listed(MERGE_ON_READ | ROW_GROUPS)})"
        )
    _insert(session, both, _rows(rng, KEYS[:12]))
    for table in both:
        dropped = ", ".join(f"'{name}'" for name in ROW_GROUPS)
        session.sql(f"ALTER TABLE {_name(table)} UNSET TBLPROPERTIES ({dropped})")
        for name, sql in (("n", "bigint"), ("amount", "decimal(38,10)"), ("ratio", "double")):
            session.sql(f"ALTER TABLE {_name(table)} ALTER COLUMN `{name}` TYPE {sql}")
        session.sql(f"ALTER TABLE {_name(table)} DROP COLUMN theirs")
        session.sql(f"ALTER TABLE {_name(table)} RENAME COLUMN renamed TO theirs")
        session.sql(f"ALTER TABLE {_name(table)} ADD COLUMNS (renamed STRING FIRST)")
    _insert(session, both, _rows(rng, rng.sample(KEYS, 9)))
    for table in both:
        session.sql(f"DELETE FROM {_name(table)} WHERE n = 1")
    _insert(session, both, _rows(rng, rng.sample(KEYS, 6)))


def _random_order(rng: random.Random, staging: Staging, number: int) -> Merge:
    may_keep = ("n", "amount", "raw", "x.y", "ratio")
    order = random_merge(rng, staging, number, partial(_rows, rng), TYPES, may_keep)
    return msgspec.structs.replace(order, summary={"cdc.more": "x"})


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_merge_of_spark(
    session: SparkSession, catalog: FolderCatalog, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random merges into a table with several files, small row groups, duplicate keys, and columns that someone else
    widened, renamed, dropped and added. The files come from Spark, from earlier merges and from a compaction, and have
    deletion vectors from both. Rows keep their ids.
    """
    rng, staging = random.Random(seed), Staging(str(tmp_path), "test")
    _make(session, rng)
    format = IcebergInSpark(catalog, CatalogTraits, staging)
    metadata = _loaded(catalog, "s.ours").metadata
    assert isinstance(metadata, TableMetadataV3)
    first_new = metadata.next_row_id or 0
    for number in range(4):
        order = _random_order(rng, staging, number)
        with monkeypatch.context() as alone:
            alone.setattr(iceberg_spark, "merge_statement", _not_called)
            format.table(session, "s.ours").do(order)
        with monkeypatch.context() as by_spark:
            by_spark.setattr(iceberg_spark, "can_merge", lambda *_: False)
            format.table(session, "s.theirs").do(order)
        ours, theirs = (_read(session, table) for table in ("ours", "theirs"))
        assert _without_ids(theirs) == _without_ids(ours) == _without_spark(catalog, "s.ours")
        assert _ids(theirs, first_new) == _ids(ours, first_new)
        ids = ours.column("_row_id").to_pylist()
        assert len(ids) == len({*ids} - {None})
        assert _summary(catalog, "theirs") == _summary(catalog, "ours")
        version = _loaded(catalog, "s.ours").metadata_location
        format.table(session, "s.ours").do(order)
        assert version == _loaded(catalog, "s.ours").metadata_location
        if number == 2:
            for table in ("s.ours", "s.theirs"):
                _compact(session, catalog, table)
            assert _without_ids(theirs) == _without_ids(_read(session, "ours"))


def _not_called(*_: object) -> str:
    raise AssertionError("Spark has merged the rows")


def _compact(session: SparkSession, catalog: FolderCatalog, table: str) -> None:
    actions: Any = session._jvm.org.apache.iceberg.spark.actions.SparkActions  # type: ignore[union-attr]
    rewrite = actions.get(session._jsparkSession).rewriteDataFiles(java_table(session, catalog, table))
    rewrite.option("rewrite-all", "true").execute()


def _read(session: SparkSession, table: str) -> pa.Table:
    return session.sql(f"SELECT *, _row_id, _last_updated_sequence_number FROM {_name(table)}").toArrow()


def _without_ids(rows: pa.Table) -> list[str]:
    """Return the rows, with the commit that changed each row last."""
    return sorted(map(repr, rows.select(SCHEMA.names).cast(SCHEMA).to_pylist()))


def _without_spark(catalog: FolderCatalog, table: str) -> list[str]:
    return _without_ids(_loaded(catalog, table).scan().to_arrow())


def _loaded(catalog: FolderCatalog, table: str) -> Table:
    found = catalog.load(table)
    assert found is not None
    return found


def _ids(rows: pa.Table, before: int) -> list[str]:
    """Return the keys, and the last changes, of the rows that have an id from before the merges."""
    named = rows.select([*KEY, "_row_id", "_last_updated_sequence_number"]).to_pylist()
    return sorted(repr(row | ({} if row["_row_id"] < before else {"_row_id": None})) for row in named)


def _summary(catalog: FolderCatalog, table: str) -> Mapping[str, str]:
    """Return the summary of the newest snapshot, without sizes and Spark's own metrics."""
    summary = _newest_summary(catalog.load(f"s.{table}"))
    varying = ("spark.merge-into.", "manifests-")
    return {
        name: value
        for name, value in summary.items()
        if not name.startswith(varying) and "-size" not in name and "data-files" not in name
    }


def _newest_summary(table: Table | None) -> dict[str, str]:
    snapshot = None if table is None else table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return {"operation": str(snapshot.summary.operation.value), **snapshot.summary.additional_properties}


def test_deletion_vectors_have_the_bytes_of_spark(session: SparkSession, tmp_path: Path) -> None:
    """Rows in an array, in a bitmap and in runs."""
    session.sql(f"CREATE TABLE {_name('t')} (id BIGINT) USING iceberg TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    session.range(0, 300_000, 1, 1).writeTo(_name("t")).append()
    session.sql(
        f"DELETE FROM {_name('t')} WHERE id < 60000 AND id % 1000 = 7 OR id BETWEEN 70000 AND 120000 "
        "OR id > 140000 AND id < 190000 AND id % 2 = 0"
    )
    (written,) = tmp_path.glob("s/t/data/[!.]*.puffin")
    theirs = PuffinFile(written.read_bytes())
    (blob,) = theirs.footer.blobs
    rows = decoded_vector(theirs.get_blob_payload(blob))
    content, _ = puffin({blob.properties["referenced-data-file"]: rows})
    ours = PuffinFile(content)
    assert [blob] == ours.footer.blobs
    assert theirs.get_blob_payload(blob) == ours.get_blob_payload(blob)


def test_a_merge_without_rows(session: SparkSession, catalog: FolderCatalog, tmp_path: Path) -> None:
    """The commit has the markers, even if no row is deleted, or if no row is left of a file."""
    staging = Staging(str(tmp_path), "test")
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    session.sql(f"INSERT INTO {_name('t')} VALUES (1, 1, 1), (2, 2, 2)")
    for number, ids in enumerate([[8], [1, 2], [1]]):
        made = {"id": ids, "n": pa.nulls(len(ids), pa.int32()), "x": pa.nulls(len(ids), pa.float64())}
        staged = staging.put("s.t", pa.table(made | {GONE: [True] * len(ids)}))
        order = msgspec.structs.replace(_order(staged, marker=Marker("app", number)), deletes=True)
        IcebergInSpark(catalog, CatalogTraits, staging).table(session, "s.t").do(order)
        summary = _newest_summary(catalog.load("s.t"))
        assert {"app": number} == json.loads(summary[MARKERS_PROPERTY])
        left = [1, 2] if number == 0 else []
        assert left == sorted(row.id for row in session.table(_name("t")).collect())
        assert left == sorted(_loaded(catalog, "s.t").scan().to_arrow().column("id").to_pylist())


# Tables that Spark's MERGE writes, because this merge would ignore a rule or a column.
_PLAIN = "(id BIGINT, n INT, x DOUBLE) USING iceberg"
OTHER_TABLES = {
    "copy on write": (_PLAIN, {"write.merge.mode": "copy-on-write"}),
    "version 2": (_PLAIN, {"format-version": "2"}),
    "partitioned": (f"{_PLAIN} PARTITIONED BY (bucket(4, id))", {}),
    "column dropped": ("(id BIGINT, n INT) USING iceberg", {}),
    "column with another type": ("(id BIGINT, n BIGINT, x DOUBLE) USING iceberg", {}),
    "not null": ("(id BIGINT NOT NULL, n INT, x DOUBLE) USING iceberg", {}),
    "list": ("(id BIGINT, n INT, x DOUBLE, s ARRAY<STRING>) USING iceberg", {}),
    "struct": ("(id BIGINT, n INT, x DOUBLE, s STRUCT<a: INT>) USING iceberg", {}),
    "orc": (_PLAIN, {"write.format.default": "orc"}),
    "bloom filter": (_PLAIN, {"write.parquet.bloom-filter-enabled.column.id": "true"}),
    "write audit publish": (_PLAIN, {"write.wap.enabled": "true"}),
    "compression level": (_PLAIN, {"write.parquet.compression-level": "best"}),
    "high level": (_PLAIN, {"write.parquet.compression-level": "99"}),
    **{
        f"level of {codec}": (
            _PLAIN,
            {"write.parquet.compression-codec": codec, "write.parquet.compression-level": "3"},
        )
        for codec in ("gzip", "snappy", "uncompressed")
    },
    **{name: (f"(id BIGINT, n INT, x DOUBLE, {name} INT) USING iceberg", {}) for name in ("_pos", "_FILE", "_deleted")},
    "names": (_PLAIN, {"schema.name-mapping.default": "[]"}),
}


@pytest.mark.parametrize("case", OTHER_TABLES)
def test_tables_that_spark_merges(session: SparkSession, catalog: FolderCatalog, case: str) -> None:
    declared, properties = OTHER_TABLES[case]
    session.sql(f"CREATE TABLE {_name('t')} {declared} TBLPROPERTIES ({_listed(MERGE_ON_READ | properties)})")
    assert not can_merge(_loaded(catalog, "s.t").metadata, _order(""))


@pytest.mark.parametrize("total", ["", "1_0", "-1", "1.0", "many", pytest.param("9" * 5000, id="long")])
def test_totals_that_others_wrote(
    session: SparkSession, catalog: FolderCatalog, monkeypatch: pytest.MonkeyPatch, total: str
) -> None:
    """The size of the table is unknown, so Spark merges."""
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    session.sql(f"INSERT INTO {_name('t')} VALUES (1, 1, 1)")
    table = _loaded(catalog, "s.t")
    assert can_merge(table.metadata, _order(""))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    monkeypatch.setitem(snapshot.summary.additional_properties, "total-data-files", total)
    assert not can_merge(table.metadata, _order(""))


def test_a_sorted_table(session: SparkSession, catalog: FolderCatalog) -> None:
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    assert can_merge(_loaded(catalog, "s.t").metadata, _order(""))
    sort_by(session, java_table(session, catalog, "s.t"), [SortKey("id", descending=False)])
    assert not can_merge(_loaded(catalog, "s.t").metadata, _order(""))


def test_keys_that_spark_merges(
    session: SparkSession, catalog: FolderCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULL equals nothing, and 0.0 equals -0.0."""
    staging = Staging(str(tmp_path), "test")
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    session.sql(f"INSERT INTO {_name('t')} VALUES (1, null, 0.0)")
    staged = staging.put("s.t", pa.table({"id": [2], "n": pa.array([None], pa.int32()), "x": [-0.0]}))
    by_spark = []

    def statement(*of: Any) -> str:
        by_spark.append(of)
        return merge_statement(*of)

    monkeypatch.setattr(iceberg_spark, "merge_statement", statement)
    for number, (key, rows) in enumerate([("x", [(2, None)]), ("n", [(2, None)] * 2), ("id", [(2, None)] * 2)]):
        order = _order(staged, key, Marker("app", number))
        IcebergInSpark(catalog, CatalogTraits, staging).table(session, "s.t").do(order)
        found = session.table(_name("t")).select("id", "n").collect()
        assert rows == [tuple(row) for row in found]
    assert 2 == len(by_spark)


CLASSES = row_delta._classes


@pytest.mark.parametrize(
    ("where", "what", "value", "told"),
    [
        (row_merge, "LARGEST", 0, []),
        (row_merge, "MOST_IN_MEMORY", 0, []),
        (merge_on_read, "_MOST", {"total-files-size": 0}, []),
        (merge_on_read, "_MOST", {"total-data-files": 0}, []),
        (merge_on_read, "_MOST", {"unknown": 9}, []),
        (merge_on_read, "_MOST", {"total-records": 0}, []),
        (row_delta, "_classes", lambda jvm: jvm.org.apache.iceberg.Missing(), []),
        (row_delta, "_classes", lambda jvm: (jvm.org.apache.iceberg.Missing,), []),
        (row_delta, "_classes", lambda jvm: CLASSES(jvm)._replace(conditions=jvm.java.lang.String), ["Py4JError"]),
        (row_delta, "_classes", lambda jvm: CLASSES(jvm)._replace(tasks=jvm.java.lang.String), ["Py4JError"]),
        (row_delta, "_classes", lambda jvm: CLASSES(jvm)._replace(data_files=jvm.java.lang.String), ["Py4JError"]),
        (row_delta, "_classes", lambda jvm: CLASSES(jvm)._replace(files=jvm.java.lang.String), ["Py4JError"]),
        (row_delta, "_json", lambda _: "{}", ["IllegalArgumentException"]),
        (IcebergFile, "deleted", lambda *_: pa.array(["x"]).cast(pa.int64()), ["ArrowInvalid"]),
        (IcebergFile, "deleted", lambda *_: Path("missing").stat(), ["FileNotFoundError"]),
        (merge_on_read, "_MOST_ROWS", 0, []),
    ],
)
def test_what_spark_merges(
    session: SparkSession,
    catalog: FolderCatalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    what: str,
    value: object,
    told: list[str],
) -> None:
    """Large tables and staged files, tables of an unknown size, other versions of Iceberg, and errors in Java and in
    Python before the commit. An error is logged. The merge that failed has left no file behind.

    Args:
        told: the logged errors.
    """
    staging = Staging(str(tmp_path), "test")
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    session.sql(f"INSERT INTO {_name('t')} VALUES (1, 1, 1)")
    staged = staging.put("s.t", pa.table({"id": [1], "n": pa.array([2], pa.int32()), "x": [2.0]}))
    row_delta._java.cache_clear()
    monkeypatch.setattr(where, what, value)
    table = IcebergInSpark(catalog, CatalogTraits, staging).table(session, "s.t")
    with capture_logs() as logs:
        table.do(_order(staged, marker=Marker("app", 1)))
    assert told == [line["error"] for line in logs if line["event"] == "merge left to Spark"]
    assert [(1, 2, 2.0)] == [tuple(row) for row in session.table(_name("t")).collect()]
    assert "spark.merge-into.num-target-rows-updated" in _newest_summary(catalog.load("s.t"))
    known = {Path(row.file_path).name for row in session.table(f"{_name('t')}.all_files").collect()}
    assert known == {path.name for path in tmp_path.rglob("data/*")}


def test_a_catalog_that_fails_with_the_commit(
    session: SparkSession, catalog: FolderCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the commit is reported. An error of the catalog would park the table if the catalog is back by the
    time it is checked.
    """
    staging = Staging(str(tmp_path), "test")
    session.sql(f"CREATE TABLE {_name('t')} {_PLAIN} TBLPROPERTIES ({_listed(MERGE_ON_READ)})")
    order = _order(staging.put("s.t", pa.table({"id": [1], "n": pa.array([2], pa.int32()), "x": [2.0]})))

    def unavailable(*_: object) -> None:
        raise FatalError("the catalog")

    def commit() -> None:
        monkeypatch.setattr(FolderCatalog, "load", unavailable)
        raise ConnectionError("the commit")

    monkeypatch.setattr(RowDelta, "prepared", lambda *_: commit)
    with pytest.raises(ConnectionError, match="the commit"):
        IcebergInSpark(catalog, CatalogTraits, staging).table(session, "s.t").do(order)


def test_metrics_and_values_that_python_lacks(
    session: SparkSession, catalog: FolderCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg's metrics of the new file equal those of Spark's file, except for sizes. Dates after the year 9999 are
    copied.
    """
    staging = Staging(str(tmp_path), "test")
    more = {"write.metadata.metrics.column.full": "full", "write.metadata.metrics.column.none": "none"}
    found = {}
    for table in ("ours", "theirs"):
        session.sql(
            f"CREATE TABLE {_name(table)} (id BIGINT, n INT, x DOUBLE, full STRING, none STRING, late DATE, "
            f"raw BINARY, d DECIMAL(20,2)) USING iceberg TBLPROPERTIES ({_listed(MERGE_ON_READ | more)})"
        )
        late = "date_add(DATE'9999-12-31', 9)"
        session.sql(
            f"INSERT INTO {_name(table)} SELECT id, 1, double('nan'), repeat('x', 40), 'y', {late}, X'FFFF', -1.5 "
            "FROM range(1, 4, 1, 1)"
        )
        rows = pa.table({"id": [1, 2, 9], "n": pa.array([5, None, 7], pa.int32()), "x": [5.0, None, -0.0]})
        with monkeypatch.context() as by_spark:
            if table == "theirs":
                by_spark.setattr(iceberg_spark, "can_merge", lambda *_: False)
            else:
                by_spark.setattr(iceberg_spark, "merge_statement", _not_called)
            order = _order(staging.put("s.t", rows), marker=Marker("app", 1))
            IcebergInSpark(catalog, CatalogTraits, staging).table(session, f"s.{table}").do(order)
        named = session.sql(f"SELECT id, n, x, full, none, string(late), raw, d FROM {_name(table)}").collect()
        columns = "content, file_format, record_count, value_counts, null_value_counts, lower_bounds, upper_bounds"
        files = session.sql(f"SELECT {columns} FROM {_name(table)}.files").collect()
        found[table] = sorted(map(repr, named)), sorted(map(repr, files))
    assert found["theirs"] == found["ours"]


def _order(path: str, key: str = "id", marker: Marker | None = None) -> Merge:
    columns = {"id": "bigint", "n": "int", "x": "double"}
    return Merge(path, columns, (), (key,), {}, inserts_only=False, version=0, marker=marker)


def _filled(lake: MergingLake) -> None:
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in range(1, 6)])


class Killed(BaseException):
    """Raised by tests instead of SIGKILL."""


def _kill_after_files(dying: pytest.MonkeyPatch) -> None:
    """Kill a merge when it has written both of its files."""
    put, paths = RowDelta._put, []

    def killed(delta: RowDelta, path: str, content: pa.Buffer) -> None:
        put(delta, path, content)
        paths.append(path)
        if len(paths) == 2:
            raise Killed

    dying.setattr(RowDelta, "_put", killed)


def test_killed_before_the_commit(lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table does not change, and the repeated batch writes its files again."""
    _filled(lake)
    changes = [change("u", {"id": 1}, {"a": "y"}, pos=10), change("d", {"id": 2}, pos=11)]
    before, version = _data(lake), lake.version("shop_sales.orders")
    with monkeypatch.context() as dying:
        _kill_after_files(dying)
        with pytest.raises(Killed):
            lake.apply(1, changes)
    assert (2, version) == (len(_data(lake) - before), lake.version("shop_sales.orders"))
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(1, changes)
    assert 1 == report.counters.commits
    assert [{"id": 1, "a": "y"}, *({"id": id, "a": "x"} for id in (3, 4, 5))] == lake.rows()


def test_killed_after_the_commit(lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker is in the commit, so the repeated batch changes nothing and writes no file."""
    _filled(lake)
    changes = [change("u", {"id": 1}, {"a": "y"}, pos=10), change("d", {"id": 2}, pos=11)]
    prepared = RowDelta.prepared

    def killed(*of: Any) -> Any:
        commit = prepared(*of)

        def committing() -> None:
            commit()
            raise Killed

        return committing

    with monkeypatch.context() as dying:
        dying.setattr(RowDelta, "prepared", killed)
        with pytest.raises(Killed):
            lake.apply(1, changes)
    data, version = _data(lake), lake.version("shop_sales.orders")
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(1, changes)
    assert (1, 0) == (report.counters.skipped, report.counters.commits)
    assert (data, version) == (_data(lake), lake.version("shop_sales.orders"))
    assert [{"id": 1, "a": "y"}, *({"id": id, "a": "x"} for id in (3, 4, 5))] == lake.rows()


def test_files_of_killed_merges(lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance deletes them once they are older than the retention of snapshots."""
    _filled(lake)
    before = _data(lake)
    with monkeypatch.context() as dying:
        _kill_after_files(dying)
        with pytest.raises(Killed):
            lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=10)])
    left = _data(lake) - before
    assert {".parquet", ".puffin"} == {Path(name).suffix for name in left}
    files = FormatMaintenance(lake.tables, lake.spark)
    assert 0 == files.vacuum("shop_sales.orders", 7)
    old = time.time() - 8 * 86_400
    for name in left:
        os.utime(Path(lake.path(), "data", name), (old, old))
    lake.applier = lake.new_applier("checkpoint-1")
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=10)])
    after = _data(lake)
    assert 2 == files.vacuum("shop_sales.orders", 7)
    assert after - left == _data(lake)
    assert {1: "y", 2: "x"} == {row["id"]: row["a"] for row in lake.rows() if row["id"] < 3}


def _data(lake: MergingLake) -> set[str]:
    return {path.name for path in Path(lake.path(), "data").glob("[!.]*")}


INSERT = "INSERT INTO {} SELECT 1, 'z', '', '', null, false, null, null"
DELETE = "DELETE FROM {} WHERE id = 2"


@pytest.mark.parametrize("other", [INSERT, DELETE, "compaction"])
def test_another_commit_at_the_same_time(lake: MergingLake, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    """A commit between reading the table and committing the merge is a conflict, and the restarted sink succeeds."""
    _filled(lake)
    lake.apply(1, [change("u", {"id": 3}, {"a": "y"}, pos=10)])
    others = sibling(lake.spark, lake.tables.iceberg_catalog.spark)

    def overtaken(*of: Any) -> Any:
        merged = merge_files(*of)
        if other == "compaction":
            rewrite_as_others(lake.spark, lake)
        else:
            others.sql(other.format(quoted(lake.tables.iceberg_catalog, "shop_sales.orders")))
        return merged

    changes = [change("u", {"id": 1}, {"a": "y"}, pos=20)]
    with monkeypatch.context() as busy:
        busy.setattr(iceberg_spark, "merge_files", overtaken)
        with pytest.raises(Overtaken, match=r"wrote the table shop_sales\.orders at the same time"):
            lake.apply(2, changes)
    lake.applier = lake.new_applier("checkpoint-1")
    lake.apply(2, changes)
    expected = {1: "y", 2: "x", 3: "y"}
    if other == DELETE:
        del expected[2]
    assert expected == {row["id"]: row["a"] for row in lake.rows() if row["id"] < 4}


def test_a_sink_merges_without_spark(lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """New tables of the sink take the new path, and the snapshot has all markers."""
    _filled(lake)
    monkeypatch.setattr(iceberg_spark, "merge_statement", _not_called)
    for batch in range(1, 4):
        lake.apply(batch, [change("u", {"id": 1}, {"a": str(batch)}, pos=10 + batch), change("d", {"id": 9}, pos=20)])
    summary = _newest_summary(lake.tables.iceberg_catalog.load("shop_sales.orders"))
    assert {"cdc.deleted", "test/checkpoint-1/shop_sales.orders"} <= json.loads(summary[MARKERS_PROPERTY]).keys()
    assert {1: "3", 2: "x", 3: "x", 4: "x", 5: "x"} == {row["id"]: row["a"] for row in lake.rows()}
