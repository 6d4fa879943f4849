"""Merges that write deletion vectors without Spark: the table equals the one that Spark's MERGE gives."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from pyspark.sql import SparkSession

from spark_sink.errors import Overtaken
from spark_sink.spark.session import session_settings
from spark_sink.tables import row_merge
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta import spark as delta_spark
from spark_sink.tables.delta.data_files import data_files
from spark_sink.tables.delta.deletion_vectors import encoded
from spark_sink.tables.delta.merge_on_read import MergedFiles, can_merge, merge_files
from spark_sink.tables.delta.spark import DeltaInSpark
from spark_sink.tables.delta.spark_transaction import DeltaTransaction
from spark_sink.tables.spark_operations import Merge
from spark_sink.tables.staging import Staging
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.tables.random_merges import KEYS, random_merge, random_rows

# The columns that are staged, by Spark's type. The table has two more columns, which someone else added.
TYPES = {
    "k": "string",
    "at": "timestamp",
    "n": "int",
    "amount": "decimal(38,10)",
    "day": "date",
    "raw": "binary",
    "flag": "boolean",
    "_cdc_updated_at": "timestamp",
}
SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "n": pa.int32(),
        "amount": pa.decimal128(38, 10),
        "day": pa.date32(),
        "raw": pa.binary(),
        "flag": pa.bool_(),
        "theirs": pa.string(),
        "set": pa.list_(pa.string()),
        "_cdc_updated_at": pa.timestamp("us", "UTC"),
    }
)
VALUES: Mapping[str, Sequence[Any]] = {
    "n": (1, -(2**31), None),
    "amount": (Decimal("0.0000000001"), Decimal("9" * 28), None),
    "day": (date(1, 1, 1), date(9999, 12, 31), None),
    "raw": (b"", b"\0\xff", None),
    "flag": (True, False, None),
    "theirs": ("x", "", None),
    "set": ([], ["a", "", None], None),
}
VECTORS = {"delta.enableDeletionVectors": "true"}


def _rows(rng: random.Random, keys: Sequence[tuple[str, datetime]], schema: pa.Schema = SCHEMA) -> pa.Table:
    return random_rows(rng, keys, VALUES, schema)


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_merge_of_spark(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random merges into a table with several files, small row groups, duplicate keys, and columns that someone else
    added. The files come from deltalake, from Spark and from earlier merges, and have deletion vectors from both.
    """
    rng, staging = random.Random(seed), Staging(str(tmp_path), "test")
    ours, theirs = tmp_path / "s" / "ours", tmp_path / "s" / "theirs"
    small = WriterProperties(max_row_group_size=4)
    for part in (KEYS[:12], rng.sample(KEYS, 9)):
        older = pa.schema([field for field in SCHEMA if field.name not in ("theirs", "set")])
        rows = _rows(rng, part, older if part is not KEYS else SCHEMA)
        write_deltalake(ours, rows, mode="append", schema_mode="merge", writer_properties=small)
    _by_spark(spark, ours, "ADD COLUMNS (theirs STRING AFTER flag, set ARRAY<STRING> AFTER theirs)")
    _by_spark(spark, ours, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.createDataFrame(_rows(rng, rng.sample(KEYS, 6)), _schema_of(spark, ours)).coalesce(1).write.format(
        "delta"
    ).mode("append").save(str(ours))
    spark.sql(f"DELETE FROM delta.`{ours}` WHERE n = 1")
    shutil.copytree(ours, theirs)
    format = DeltaInSpark(staging)
    for number in range(4):
        order = random_merge(rng, staging, number, partial(_rows, rng), TYPES, ("n", "amount", "raw"))
        version = DeltaTable(ours).version()
        format.table(spark, "s.ours").do(order)
        with monkeypatch.context() as by_spark:
            by_spark.setattr(delta_spark, "can_merge", lambda *_: False)
            format.table(spark, "s.theirs").do(order)
        assert version + 1 == DeltaTable(ours).version()
        assert [number] * 2 == [DeltaTable(ours).transaction_version(app) for app in ("app", "other")]
        assert _read(spark, theirs) == _read(spark, ours) == _without_spark(ours)
        format.table(spark, "s.ours").do(order)
        assert version + 1 == DeltaTable(ours).version()
    assert "MERGE" == DeltaTable(ours).history(1)[0]["operation"]
    spark.sql(f"OPTIMIZE delta.`{ours}`")
    assert _read(spark, theirs) == _read(spark, ours)


def _schema_of(spark: SparkSession, path: Path) -> Any:
    return spark.read.format("delta").load(str(path)).schema


def _by_spark(spark: SparkSession, path: Path, change: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{path}` {change}")


def _read(spark: SparkSession, path: Path) -> list[str]:
    return _sorted(spark.read.format("delta").load(str(path)).toArrow())


def _without_spark(path: Path) -> list[str]:
    found = QueryBuilder().register("stored", DeltaTable(path)).execute("SELECT * FROM stored")
    return _sorted(pa.RecordBatchReader.from_stream(found).read_all())


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.select(SCHEMA.names).cast(SCHEMA).to_pylist()))


def test_deletion_vectors_have_the_bytes_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Rows in an array, in a bitmap and in runs."""
    spark.range(0, 300_000, 1, 1).write.format("delta").options(**VECTORS).save(str(tmp_path))
    _by_spark(spark, tmp_path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(
        f"DELETE FROM delta.`{tmp_path}` WHERE id < 60000 AND id % 1000 = 7 OR id BETWEEN 70000 AND 120000 "
        "OR id > 140000 AND id < 190000 AND id % 2 = 0"
    )
    (file,) = data_files(DeltaTable(tmp_path), {})
    (written,) = tmp_path.glob("deletion_vector_*.bin")
    content, (place,) = encoded([file.deleted])
    assert written.read_bytes() == content
    (action,) = [action for action in _log(tmp_path, 2) if "add" in action]
    described = action["add"]["deletionVector"]
    assert (described["offset"], described["sizeInBytes"], described["cardinality"]) == place


def _log(path: Path, version: int) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


# Tables that Spark's MERGE writes, because this merge would ignore a rule or a column.
_PLAIN = "(id BIGINT, n INT, x DOUBLE) USING delta"
OTHER_TABLES = {
    "disabled": f"{_PLAIN} TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "partitioned": f"{_PLAIN} PARTITIONED BY (n)",
    "clustered": f"{_PLAIN} CLUSTER BY (id)",
    "change data feed": f"{_PLAIN} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "change data feed in capitals": f"{_PLAIN} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'TRUE')",
    "column dropped": "(id BIGINT, n INT) USING delta",
    "append only": f"{_PLAIN} TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "column mapping": f"{_PLAIN} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "row tracking": f"{_PLAIN} TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "not null": "(id BIGINT NOT NULL, n INT, x DOUBLE) USING delta",
    "constraint": f"{_PLAIN} TBLPROPERTIES ('delta.constraints.few' = 'n < 9')",
    "length": "(id BIGINT, n INT, x DOUBLE, s VARCHAR(3)) USING delta",
    "default": f"{_PLAIN} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    "type widening": f"{_PLAIN} TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
}


@pytest.mark.parametrize("case", OTHER_TABLES)
def test_tables_that_spark_merges(spark: SparkSession, tmp_path: Path, case: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}` {OTHER_TABLES[case]}")
    if case != "disabled":
        _by_spark(spark, tmp_path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert not can_merge(DeltaTable(tmp_path), _order(""))


def test_keys_that_spark_merges(spark: SparkSession, tmp_path: Path) -> None:
    """NULL equals nothing, and 0.0 equals -0.0."""
    path, staging = tmp_path / "s" / "t", Staging(str(tmp_path), "test")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT COMMENT 'x', n INT, x DOUBLE) USING delta")
    _by_spark(spark, path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, null, 0.0)")
    staged = staging.put("s.t", pa.table({"id": [2], "n": pa.array([None], pa.int32()), "x": [-0.0]}))
    for number, (key, rows) in enumerate([("x", [(2, None)]), ("n", [(2, None)] * 2), ("id", [(2, None)] * 2)]):
        order = _order(staged, key, Marker("app", number))
        DeltaInSpark(staging).table(spark, "s.t").do(order)
        found = spark.read.format("delta").load(str(path)).select("id", "n").collect()
        assert rows == [tuple(row) for row in found]
        by_spark = DeltaTable(path).history(1)[0]["operationParameters"]["predicate"] != "[]"
        assert by_spark is (key != "id")


def test_a_large_staged_file(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark merges it, because it does not load the whole file."""
    path, staging = tmp_path / "s" / "t", Staging(str(tmp_path), "test")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n INT, x DOUBLE) USING delta")
    _by_spark(spark, path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    staged = staging.put("s.t", pa.table({"id": [1], "n": pa.array([5], pa.int32()), "x": [5.0]}))
    for number, is_large in enumerate((True, False)):
        monkeypatch.setattr(row_merge, "LARGEST", staging.size(staged) - is_large)
        DeltaInSpark(staging).table(spark, "s.t").do(_order(staged, marker=Marker("app", number)))
        by_spark = DeltaTable(path).history(1)[0]["operationParameters"]["predicate"] != "[]"
        assert by_spark is is_large


def test_files_without_a_number_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Someone has added rows without statistics. Delta Lake needs a file's number of rows for a deletion vector, and
    Spark's MERGE counts the rows.
    """
    path, staging = tmp_path / "s" / "t", Staging(str(tmp_path), "test")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n INT, x DOUBLE) USING delta")
    _by_spark(spark, path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    with session_settings(spark, {"spark.databricks.delta.stats.collect": "false"}):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 1, 1), (2, 2, 2)")
    for number in (1, 2):
        rows = pa.table({"id": [number], "n": pa.array([5], pa.int32()), "x": [5.0]})
        DeltaInSpark(staging).table(spark, "s.t").do(_order(staging.put("s.t", rows), marker=Marker("app", number)))
        assert number == DeltaTable(path).transaction_version("app")
    found = spark.read.format("delta").load(str(path)).collect()
    assert [(1, 5, 5.0), (2, 5, 5.0)] == sorted(map(tuple, found))


def test_statistics_of_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    """deltalake reads the statistics of a table that keeps them for structs, and for dates that Python lacks."""
    path, staging = tmp_path / "s" / "t", Staging(str(tmp_path), "test")
    columns = "id BIGINT, n INT, x DOUBLE, s STRUCT<a: INT>, day DATE, late DATE"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    _by_spark(spark, path, "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    late = "date_add(DATE'9999-12-31', 9)"
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, 1, 1, struct(1), DATE'0001-01-01', {late}")
    staged = staging.put("s.t", pa.table({"id": [1], "n": pa.array([5], pa.int32()), "x": [5.0]}))
    DeltaInSpark(staging).table(spark, "s.t").do(_order(staged, marker=Marker("app", 1)))
    assert DeltaTable(path).history(1)[0]["operationParameters"]["predicate"] == "[]"
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    (known,) = actions.select(["num_records", "null_count.id", "max.n", "min.day", "max.late"]).to_pylist()
    assert [1, 0, 5, date(1, 1, 1), None] == [*known.values()]
    assert [(5, 1)] == [
        tuple(row) for row in spark.sql(f"SELECT n, s.a FROM delta.`{path}` WHERE late = {late}").collect()
    ]


def test_another_commit_with_the_marker(spark: SparkSession, tmp_path: Path) -> None:
    """If another sink has committed a later batch, a commit without rows is a conflict, too. It would set the marker
    back.
    """
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    nothing = MergedFiles(0, None, uuid4(), {})
    transaction = DeltaTransaction(spark, str(tmp_path))
    assert DeltaTransaction(spark, str(tmp_path)).commit(nothing, [Marker("app", 8)])
    assert DeltaTransaction(spark, str(tmp_path)).commit(nothing, [Marker("unrelated", 1)])
    with pytest.raises(Exception, match=r"io\.delta\.exceptions\.ConcurrentTransactionException") as conflict:
        transaction.commit(nothing, [Marker("app", 7)])
    assert DeltaInSpark(Staging(str(tmp_path), "test")).is_overtaken(str(conflict.value))
    assert 8 == DeltaTable(tmp_path).transaction_version("app")


def _order(path: str, key: str = "id", marker: Marker | None = None) -> Merge:
    columns = {"id": "bigint", "n": "int", "x": "double"}
    return Merge(path, columns, (), (key,), {}, inserts_only=False, version=0, marker=marker)


def _filled(lake: MergingLake) -> None:
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": id}, {"a": "x"}, pos=id) for id in range(1, 6)])


def test_a_file_without_rows(vectors_lake: MergingLake) -> None:
    """A file whose rows are all replaced leaves the table. If all rows are deleted, no file is left."""
    _filled(vectors_lake)
    before = {file.path for file in _files(vectors_lake)}
    vectors_lake.apply(1, [change("u", {"id": id}, {"a": "y"}, pos=10 + id) for id in range(1, 6)])
    (after,) = _files(vectors_lake)
    assert ({after.path} & before, after.kept) == (set(), None)
    vectors_lake.apply(2, [change("d", {"id": id}, pos=20 + id) for id in range(1, 6)])
    assert ([], []) == (_files(vectors_lake), vectors_lake.rows())


def _files(lake: MergingLake) -> list[Any]:
    return data_files(DeltaTable(lake.path()), {})


class Killed(BaseException):
    """Raised by tests instead of SIGKILL."""


def test_killed_before_the_commit(vectors_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table does not change, the repeated batch writes its files again, and VACUUM deletes the first ones."""
    lake = vectors_lake
    _filled(lake)
    changes = [change("u", {"id": 1}, {"a": "y"}, pos=10), change("d", {"id": 2}, pos=11)]
    before, version = _data(lake), lake.version("shop_sales.orders")
    with monkeypatch.context() as dying:
        dying.setattr(DeltaTransaction, "commit", _killed)
        with pytest.raises(Killed):
            lake.apply(1, changes)
    left = _data(lake) - before
    assert (2, version) == (len(left), lake.version("shop_sales.orders"))
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(1, changes)
    assert (1, version + 1) == (report.counters.commits, lake.version("shop_sales.orders"))
    expected = [{"id": 1, "a": "y"}, *({"id": id, "a": "x"} for id in (3, 4, 5))]
    assert expected == lake.rows()
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        lake.spark.sql(f"VACUUM delta.`{lake.path()}` RETAIN 0 HOURS")
    finally:
        lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert not left & _data(lake)
    assert expected == lake.rows()


def _killed(*_: object) -> None:
    raise Killed


def _data(lake: MergingLake) -> set[str]:
    return {path.name for path in Path(lake.path()).glob("*.*")}


@pytest.mark.parametrize("other", ["INSERT INTO {} SELECT 9, 'z', '', '', null, false, null, null", "OPTIMIZE {}"])
def test_another_commit_at_the_same_time(
    vectors_lake: MergingLake, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """A commit between reading the table and committing the merge is a conflict, and the restarted sink succeeds."""
    lake = vectors_lake
    _filled(lake)
    lake.apply(1, [change("u", {"id": 3}, {"a": "y"}, pos=10)])

    def overtaken(*of: Any) -> Any:
        lake.spark.sql(other.format(f"delta.`{lake.path()}`"))
        return merge_files(*of)

    changes = [change("u", {"id": 1}, {"a": "y"}, pos=20)]
    with monkeypatch.context() as busy:
        busy.setattr(delta_spark, "merge_files", overtaken)
        with pytest.raises(Overtaken, match=r"wrote the table shop_sales\.orders at the same time"):
            lake.apply(2, changes)
    lake.applier = lake.new_applier("checkpoint-1")
    lake.apply(2, changes)
    assert {1: "y", 2: "x", 3: "y"} == {row["id"]: row["a"] for row in lake.rows() if row["id"] < 4}


@pytest.mark.parametrize("lists", [True, False])
def test_a_version_without_a_list_of_its_files(vectors_lake: MergingLake, *, lists: bool) -> None:
    """Spark jobs collect the files, for example if the table has too many for its checksums."""
    lake = vectors_lake
    _filled(lake)
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=10)])
    if not lists:
        for checksum in Path(lake.path(), "_delta_log").glob("*.crc"):
            checksum.unlink()
        jvm: Any = lake.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    lake.apply(2, [change("u", {"id": id}, {"a": "z"}, pos=10 + id) for id in (1, 2)])
    assert {1: "z", 2: "z", 3: "x", 4: "x", 5: "x"} == {row["id"]: row["a"] for row in lake.rows()}
