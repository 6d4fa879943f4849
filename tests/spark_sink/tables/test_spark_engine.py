"""Tables of both formats that Spark writes: the same batches give the same tables as with deltalake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_core.position import position
from spark_sink.errors import Overtaken
from spark_sink.spark.session import sibling
from spark_sink.tables.delta import spark as delta_spark
from spark_sink.tables.formats import spark_writer
from spark_sink.tables.meta_columns import UPDATED_AT
from spark_sink.tables.protocols import MirrorTable
from spark_sink.tables.spark_operations import Merge, Order, OrderRunner
from spark_sink.tables.spark_sql import staged_rows
from spark_sink.tables.staging import Staging
from tests.spark_sink.changes import OTHER_SCOPE, change, schema_of
from tests.spark_sink.lake import MergingLake
from tests.spark_sink.pairs import EVERY, announce, both, present, rules, stored

# Two concurrent merges collide in the first or second of them.
ROUNDS = 50


def test_all_give_one_table(merging_lake: MergingLake) -> None:
    """Inserts, patches, deletes, moved keys, broken events, a truncate in the middle of a batch and replays give the
    same columns and rows as deltalake, including our columns. Spark reads the same.
    """
    merging_lake.use(rules())
    announce(merging_lake, {"id": "int64", "a": "string", "t": "timestamptz", "n": "decimal(38,10)"})
    far = {"a": "x", "t": "0001-01-01T00:00:00Z", "n": "1234567890123456789012345678.1234567891"}
    batches = [
        [change("c", {"id": id}, far, pos=id) for id in range(1, 6)],
        [
            change("u", {"id": 1}, {"a": None}, pos=11, full=False),
            change("u", {"id": 2}, {"t": "9999-12-31T23:59:59.999999Z"}, pos=12, full=False),
            change("d", {"id": 3}, pos=13),
            change("u", {"id": 14}, {"a": "moved"}, key_old={"id": 4}, pos=14, full=False),
            change("c", {"id": 6}, {"a": "new"}, pos=15),
            change("u", {"id": 5}, {"n": "x"}, pos=16, full=False),
            change("u", {"id": 7}, {"a": "unknown"}, pos=17, full=False),
        ],
        [
            change("c", {"id": 8}, {"a": "gone"}, pos=21),
            change("t", None, pos=22),
            change("c", {"id": 9}, {"a": "y"}, pos=23),
            change("u", {"id": 1}, {"a": "late"}, pos=19),
            change("c", {"id": 9}, {"a": "other"}, pos=5, scope=OTHER_SCOPE),
        ],
    ]
    for number, batch in enumerate(batches):
        reports = merging_lake.apply(number, both(batch, tables=EVERY))
        assert EVERY == {r.table.split(".")[1]: r.choice.engine for r in reports if r.choice}
        for table in EVERY:
            assert stored(merging_lake, "orders") == stored(merging_lake, table)
    assert present(merging_lake, "orders") == present(merging_lake, "iced")
    versions = [merging_lake.version(f"shop_sales.{table}") for table in EVERY]
    again = merging_lake.apply(2, both(batches[2], tables=EVERY))
    assert [3] * len(EVERY) == [report.counters.skipped for report in again]
    assert versions == [merging_lake.version(f"shop_sales.{table}") for table in EVERY]
    reasons = [reason for reason, _, _ in merging_lake.quarantine()]
    assert ["VALUE_INVALID"] * len(EVERY) == reasons
    assert not list(merging_lake.warehouse.glob("_cdc/staging/*/*"))


class Killed(BaseException):
    """Raised by tests instead of SIGKILL."""


class DyingWriter:
    """Dies before or after executing an order. `staged` is what was staged at that time."""

    def __init__(self, merging_lake: MergingLake, writer: OrderRunner, *, before: bool) -> None:
        self._lake, self._writer, self._before = merging_lake, writer, before
        self.staged: dict[str, bytes] = {}

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        if not orders:  # the table has requested its records
            return {}
        files = self._lake.warehouse.glob("_cdc/staging/*/*/*")
        self.staged = {path.name: path.read_bytes() for path in files}
        if not self._before:
            self._writer.carry_out(orders)
        raise Killed

    def version(self, table: str) -> int:
        raise AssertionError("nothing was done")

    def discard(self) -> None:
        raise AssertionError("nothing was done")


@pytest.mark.parametrize("table", ["merged", "iced", "vectors"])
def test_killed_around_a_merge(merging_lake: MergingLake, table: str) -> None:
    """A driver that dies between staging and MERGE stages the same file again. One that dies after the MERGE does not
    repeat it. Staged files are removed with the next batch that stages.
    """
    merging_lake.use(rules())
    sent = [change("c", {"id": "1"}, {"a": "x"}, pos=1, table=table)]
    merging_lake.apply(0, sent)
    changed = [
        change("u", {"id": "1"}, {"a": "y"}, pos=2, table=table),
        change("c", None, {}, pos=3, table=table),
    ]
    found = []
    for before in (True, True, False):
        merging_lake.applier = merging_lake.new_applier("checkpoint-1")
        writer = DyingWriter(
            merging_lake,
            spark_writer(merging_lake.spark, merging_lake.tables),
            before=before,
        )
        merging_lake.applier._writer = writer
        with pytest.raises(Killed):
            merging_lake.apply(1, changed)
        found.append(writer.staged)
    assert found[0] == found[1] == found[2] != {}
    version = merging_lake.version(f"shop_sales.{table}")
    assert ["y"] == [row["a"] for row in stored(merging_lake, table)]
    merging_lake.applier = merging_lake.new_applier("checkpoint-1")
    (report,) = merging_lake.apply(1, changed)
    assert (1, 0, version) == (
        report.counters.skipped,
        report.counters.commits,
        merging_lake.version(f"shop_sales.{table}"),
    )
    assert 1 == len(merging_lake.quarantine())
    merging_lake.apply(2, [change("d", {"id": "1"}, pos=4, table=table)])
    assert ([], []) == (merging_lake.rows(f"shop_sales.{table}"), list(merging_lake.warehouse.glob("_cdc/staging/*/*")))


def test_killed_between_a_marker_and_its_merge(merging_lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Delta tables, Spark commits the marker that names the deleted rows before the merge. Until the batch is
    repeated, a row that is still in the table takes precedence. Afterwards, its deletes hold.
    """
    merging_lake.use(rules())
    inserts = [change("c", {"id": id}, {"a": "x"}, pos=int(id), table="merged") for id in "123"]
    merging_lake.apply(0, inserts)
    deletes = [change("d", {"id": id}, pos=10 + int(id), table="merged") for id in "129"]
    with monkeypatch.context() as broken:
        broken.setattr(delta_spark, "merge_statement", _killed)
        with pytest.raises(Killed):
            merging_lake.apply(1, deletes)
    table = merging_lake.tables.open("shop_sales.merged")
    assert isinstance(table, MirrorTable)
    assert 0 < (table.applied("cdc.deleted") or 0)
    found = {key: (mark.pos, mark.deleted) for key, mark in table.marks({("1",), ("9",)}).items()}
    assert {("1",): (position(1, 0), False), ("9",): (position(19, 0), True)} == found
    merging_lake.applier = merging_lake.new_applier("checkpoint-1")
    merging_lake.apply(1, deletes)
    merging_lake.apply(2, [*inserts, change("c", {"id": "9"}, {"a": "x"}, pos=9, table="merged")])
    assert [{"id": "3", "a": "x"}] == merging_lake.rows("shop_sales.merged")


def _killed(*_: object) -> str:
    raise Killed


FOREIGN = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"


def test_features_that_deltalake_does_not_write(merging_lake: MergingLake) -> None:
    """A table with such features continues under Spark, as the log explains, and its files are read correctly."""
    merging_lake.announce(schema_of({"id": "int64", "n": "int32"}))
    with structlog.testing.capture_logs() as logs:
        merging_lake.apply(0, [change("c", {"id": id}, {"n": id}, pos=id) for id in (1, 2, 3)])
        merging_lake.spark.sql(f"ALTER TABLE delta.`{merging_lake.path()}` SET TBLPROPERTIES ({FOREIGN})")
        merging_lake.apply(1, [change("u", {"id": 1}, {"n": 10}, pos=4), change("d", {"id": 2}, pos=5)])
        (report,) = merging_lake.apply(
            2, [change("u", {"id": 1}, {"n": 0}, pos=3), change("u", {"id": 2}, {"n": 0}, pos=4)]
        )
    assert {"duplicate": 2} == report.counters.stale
    assert {1: {"n": 10}, 3: {"n": 3}} == present(merging_lake, "orders")
    chosen = [(line["engine"], line["reason"]) for line in logs if line["event"] == "engine chosen"]
    assert [("fused", "spark"), "deltalake cannot write: columnMapping, deletionVectors"] == [
        tuple(engine for engine, _ in chosen),
        chosen[1][1],
    ]


def test_a_rule_that_somebody_gave_the_table(merging_lake: MergingLake) -> None:
    """A row that violates it parks its table without showing its values in the log. Other tables continue. After the
    rule is dropped, a resume applies everything. Events that were broken themselves and leave a gap are then
    quarantined twice.
    """
    merging_lake.use(rules())
    merging_lake.announce(schema_of({"id": "int64", "n": "int32"}, table="merged"))
    merging_lake.apply(0, [change("c", {"id": 1}, {"n": 1}, pos=1, table="merged")])
    path = merging_lake.path("shop_sales.merged")
    merging_lake.spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT few CHECK (n IS NULL OR n < 12345)")
    broken = [
        change("u", {"id": 1}, {"n": 12345}, pos=6, table="merged"),
        change("c", {"id": 4}, {"n": "x"}, pos=7, table="merged"),
        change("t", None, pos=8, table="merged"),
        change("c", {"id": "1"}, {"a": "x"}, pos=9),
    ]
    with structlog.testing.capture_logs() as logs:
        reports = merging_lake.apply(1, broken)
    assert {"orders": 1, "merged": 0} == {report.table.split(".")[1]: report.counters.commits for report in reports}
    assert [{"id": "1", "a": "x"}] == merging_lake.rows()
    assert [("VALUE_INVALID", 1)] == [row[:2] for row in merging_lake.quarantine()]
    assert [("TABLE_REFUSED", offset) for offset in (0, 1, 2)] == merging_lake.parked()
    (refusal,) = [line for line in logs if line["event"] == "table parked"]
    assert refusal["reason"].endswith("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    merging_lake.apply(2, [change("u", {"id": 1}, {"n": 12344}, pos=10, table="merged")])
    failed = merging_lake.command("resume", "shop_sales.merged")
    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in (failed.error or "")
    assert ({1: {"n": 1}}, 4) == (present(merging_lake, "merged"), len(merging_lake.parked()))
    merging_lake.spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT few")
    assert "4 events replayed" == merging_lake.command("resume", "shop_sales.merged").result
    assert ({1: {"n": 12344}}, []) == (present(merging_lake, "merged"), merging_lake.parked())
    assert [("VALUE_INVALID", 1)] * 2 == [row[:2] for row in merging_lake.quarantine()]


def test_what_waits_comes_back(merging_lake: MergingLake) -> None:
    """A resume stages and merges turn by turn, including truncates in the middle, with the same result as deltalake.
    The manifest has the version that readers see.
    """
    merging_lake.use(rules())
    announce(merging_lake, {"id": "int64", "a": "string"})
    merging_lake.apply(0, both([change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2, 3)], tables=EVERY))
    assert merging_lake.version("shop_sales.merged") == _told(merging_lake, "shop_sales.merged")
    for table in EVERY:
        assert "parked" == merging_lake.command("park", f"shop_sales.{table}").result
    merging_lake.apply(
        1,
        both(
            [change("u", {"id": 1}, {"a": "y"}, pos=4, full=False), change("d", {"id": 2}, pos=5)],
            tables=EVERY,
        ),
    )
    truncate = [change("c", {"id": 4}, {"a": "x"}, pos=6), change("t", None, pos=7), change("c", {"id": 5}, {}, pos=8)]
    merging_lake.apply(2, both(truncate, tables=EVERY))
    merging_lake.apply(3, both([change("u", {"id": 5}, {"a": "z"}, pos=9, full=False)], tables=EVERY))
    for table in EVERY:
        assert "6 events replayed" == merging_lake.command("resume", f"shop_sales.{table}").result
        assert merging_lake.version(f"shop_sales.{table}") == _told(merging_lake, f"shop_sales.{table}")
    # Two commands at different times.
    found = [[row | {UPDATED_AT: None} for row in stored(merging_lake, table)] for table in EVERY]
    assert [found[0]] * len(EVERY) == found
    assert ([{"id": "5", "a": "z"}], []) == (
        [{**row, "id": str(row["id"])} for row in merging_lake.rows()],
        merging_lake.parked(),
    )
    assert not list(merging_lake.warehouse.glob("_cdc/staging/*/*"))


def _told(merging_lake: MergingLake, table: str) -> int:
    """The version of a table that the manifest told last: those of Iceberg tables are in no order."""
    rows = merging_lake.control.batches.read(["ended_at", "versions"]).sort_by("ended_at").to_pylist()
    return [int(version) for row in rows for name, version in row["versions"] if name == table][-1]


def test_deleted_rows_that_stay(merging_lake: MergingLake) -> None:
    """Soft deletes with a truncate among them give the same rows under every engine."""
    merging_lake.use(replace(rules(), soft_deletes=True))
    announce(merging_lake, {"id": "int64", "a": "string"})
    merging_lake.apply(0, both([change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2, 3)], tables=EVERY))
    later = [change("d", {"id": 1}, pos=4), change("t", None, pos=5), change("c", {"id": 4}, {}, pos=6)]
    merging_lake.apply(1, both(later, tables=EVERY))
    assert [stored(merging_lake, "orders")] * len(EVERY) == [stored(merging_lake, table) for table in EVERY]
    deleted = {row["id"] for row in stored(merging_lake, "merged") if row["_cdc_deleted_at"] is not None}
    assert {1, 2, 3} == deleted


def test_a_sweep(merging_lake: MergingLake) -> None:
    """The sweep deletes rows that a reload lacked, even if only Spark can read the table's past and present."""
    merging_lake.use(rules())
    announce(merging_lake, {"id": "int64", "a": "string"})
    merging_lake.apply(0, both([change("c", {"id": id}, {"a": "old"}, pos=id) for id in (1, 2, 3)], tables=EVERY))
    merging_lake.spark.sql(
        f"ALTER TABLE delta.`{merging_lake.path('shop_sales.merged')}` SET TBLPROPERTIES ({FOREIGN})"
    )
    merging_lake.apply(1, both([change("d", {"id": 3}, pos=4)], tables=EVERY))
    loaded = datetime.now(UTC).isoformat()
    merging_lake.apply(2, both([change("r", {"id": 1}, {"a": "new"}, pos=10)], tables=EVERY))
    for table in EVERY:
        told = [merging_lake.command("sweep", f"shop_sales.{table}", loaded).result for _ in "ab"]
        assert (["1 rows deleted", "0 rows deleted"], {1: {"a": "new"}}) == (told, present(merging_lake, table))
    assert not list(merging_lake.warehouse.glob("_cdc/staging/*/*"))


class RobbedWriter:
    """Another sink of the same configuration completes the batch and discards what both had staged."""

    def __init__(self, writer: OrderRunner) -> None:
        self._writer = writer

    def carry_out(self, orders: Mapping[str, Sequence[Order]]) -> Mapping[str, str]:
        if orders:
            self._writer.discard()
        return self._writer.carry_out(orders)

    def version(self, table: str) -> int:
        return self._writer.version(table)

    def discard(self) -> None:
        self._writer.discard()


@pytest.mark.parametrize("table", ["merged", "iced", "vectors"])
def test_staged_files_that_another_sink_discards(merging_lake: MergingLake, table: str) -> None:
    """If staged files are missing, the sink stops as overtaken, and the next start stages them again."""
    merging_lake.use(rules())
    merging_lake.announce(schema_of({"id": "int64", "n": "int32"}, table=table))
    events = [change(op, {"id": 1}, {"n": pos}, pos=pos, table=table) for pos, op in enumerate("cu")]
    for number, event in enumerate(events):
        merging_lake.applier._writer = RobbedWriter(spark_writer(merging_lake.spark, merging_lake.tables))
        with pytest.raises(Overtaken, match=r"wrote the staged files of the table \S+ at the same time"):
            merging_lake.apply(number, [event])
        merging_lake.applier = merging_lake.new_applier("checkpoint-1")
        merging_lake.apply(number, [event])
        assert {1: {"n": number}} == present(merging_lake, table)


def test_staged_files_that_go_while_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Spark fails, even if its settings tell it to skip missing files."""
    staging = Staging(str(tmp_path), "test")
    path = staging.put("t", pa.table({"id": [1]}))
    order = Merge(path, {"id": "bigint"}, (), ("id",), {}, inserts_only=False, version=0, marker=None)
    rows = staged_rows(sibling(spark, {"spark.sql.files.ignoreMissingFiles": "true"}), staging, order)
    (tmp_path / staging.folder / order.path).unlink()
    with pytest.raises((PySparkException, Py4JError), match="FILE_NOT_EXIST"):
        rows.collect()


@pytest.mark.parametrize("table", ["merged", "iced", "vectors"])
def test_two_sinks_at_once(merging_lake: MergingLake, table: str) -> None:
    """The sink that is overtaken in a MERGE gets an error for operators, and the table has the other's change."""
    merging_lake.use(rules())
    merging_lake.announce(schema_of({"id": "int64", "n": "int32"}, table=table))
    merging_lake.apply(0, [change("c", {"id": 1}, {"n": 0}, pos=1, table=table)])
    other = merging_lake.beside(merging_lake.warehouse)
    other.schemas, other.rules = merging_lake.schemas, merging_lake.rules
    other.applier = other.new_applier("checkpoint-2")
    with ThreadPoolExecutor(2) as both_at_once:
        for number in range(1, ROUNDS):
            event = change("u", {"id": 1}, {"n": number}, pos=number + 1, table=table)
            ended = [both_at_once.submit(lake.apply, number, [event]) for lake in (merging_lake, other)]
            errors = [error for future in ended if (error := future.exception()) is not None]
            if errors:
                break
    (overtaken,) = errors
    assert isinstance(overtaken, Overtaken)
    assert str(overtaken).startswith(f"another sink or program wrote the table shop_sales.{table} at the same time. ")
    assert {1: {"n": number}} == present(merging_lake, table)
