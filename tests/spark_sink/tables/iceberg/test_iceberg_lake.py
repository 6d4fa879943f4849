"""Iceberg tables on real Spark: differences from Delta Lake, and the effects of kills and other programs."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from structlog.testing import capture_logs

from spark_sink.apply import driver
from spark_sink.apply.existing_tables import check_tables
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.maintenance import due
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.table_spec import Format, Mode
from spark_sink.tables.formats import FormatMaintenance
from spark_sink.tables.iceberg.open_table import near, within
from spark_sink.tables.meta_columns import POS
from spark_sink.tables.protocols import MirrorTable
from spark_sink.tables.reach import reach_of
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import MergingLake, rewrite_as_others
from tests.spark_sink.records import refusal

NAME = "shop_sales.orders"
ICEBERG = TableRules(formats={"*": Format.ICEBERG})


@pytest.fixture
def lake(merging_lake: MergingLake) -> MergingLake:
    merging_lake.use(ICEBERG)
    return merging_lake


def _hint(lake: MergingLake) -> Path:
    return Path(lake.path()) / "metadata" / "version-hint.text"


def test_types_that_change(lake: MergingLake) -> None:
    """C12: integers and floats are widened in place, including keys, and so is decimal precision. Other changes get an
    additional column. The smallest integers are `int`. Old rows are found and patched.
    """
    before = {
        "id": "int32",
        "n": "int32",
        "f": "float32",
        "d": "decimal(10,2)",
        "e": "decimal(10,2)",
        "s": "int8",
        "m": "uint8",
    }
    after = {
        "id": "int64",
        "n": "int64",
        "f": "float64",
        "d": "decimal(14,2)",
        "e": "decimal(14,4)",
        "s": "int32",
        "m": "decimal(5,1)",
    }
    old = lake.announce(schema_of(before))
    first: dict[str, Any] = {"n": 1, "f": 0.5, "d": "1.25", "e": "1.25", "s": 3, "m": 4}
    lake.apply(0, [change("c", {"id": id}, first, pos=id, schema=old) for id in (1, 2, 3)])
    new = lake.announce(schema_of(after))
    wide: dict[str, Any] = {"n": 2**40, "f": 1e300, "d": "9" * 12 + ".25", "e": "0.0001", "s": 300, "m": "4.5"}
    lake.apply(
        1,
        [
            change("u", {"id": 1}, wide, pos=4, schema=new),
            change("u", {"id": 2}, {"n": 9}, pos=5, full=False, schema=old),
            change("c", {"id": 2**33}, wide, pos=6, schema=new),
        ],
    )
    lake.apply(2, [change("u", {"id": 30}, {"n": 8}, key_old={"id": 3}, pos=7, full=False, schema=new)])
    types = {field.name: field.dataType.simpleString() for field in lake.read().schema}
    assert {
        "id": "bigint",
        "n": "bigint",
        "f": "double",
        "d": "decimal(14,2)",
        "s": "int",
        "e": "decimal(10,2)",
        "e__v2": "decimal(14,4)",
        "m": "int",
        "m__v2": "decimal(5,1)",
    } == {name: type for name, type in types.items() if not name.startswith("_cdc_")}
    kept = {"f": 0.5, "d": Decimal("1.25"), "e": Decimal("1.25"), "s": 3, "m": 4}
    new_row = {
        "n": 2**40,
        "f": 1e300,
        "d": Decimal("9" * 12 + ".25"),
        "s": 300,
        "e__v2": Decimal("0.0001"),
        "m__v2": Decimal("4.5"),
    }
    found = {row.pop("id"): {name: value for name, value in row.items() if value is not None} for row in lake.rows()}
    assert {1: new_row, 2: {"n": 9, **kept}, 30: {"n": 8, **kept}, 2**33: new_row} == found


def test_names_that_iceberg_has_for_itself(lake: MergingLake) -> None:
    """Such a column gets another name and is still written and read. Other unusual names are kept."""
    names = ["_file", "_POS", "_deleted", "_spec_id", "_partition", "_row_id", "_change_type", "pos", "file_path"]
    names += ["a.b", "名", "it's"]
    lake.announce(schema_of({"id": "int64", **dict.fromkeys(names, "string")}))
    for batch in range(2):
        lake.apply(batch, [change("c", {"id": batch}, {name: f"{batch} {name}" for name in names}, pos=batch + 1)])
    lake.apply(2, [change("u", {"id": 0}, {"_file": "new"}, pos=5, full=False)])
    opened = lake.tables.open(NAME)
    assert opened is not None
    columns = {column.sent_as: column.name for column in opened.shape.columns}
    assert [*("~5f~file", "~5f~POS", "~5f~deleted"), *("pos", "file_path", "a.b", "名", "it's")] == [
        columns[name] for name in (*names[:3], *names[-5:])
    ]
    first = lake.rows()[0]
    assert {name: "new" if name == "_file" else f"0 {name}" for name in names} == {
        name: first[columns[name]] for name in names
    }


def test_killed_between_a_commit_and_its_hint(lake: MergingLake) -> None:
    """The next sink finds the latest metadata and therefore the marker, so the batch is not written again."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    batch = [change("c", {"id": 1}, {"a": "x"}, pos=1)]
    lake.apply(0, batch)
    version, hint = lake.version(), _hint(lake)
    hint.write_text(str(int(hint.read_text()) - 1))
    lake.applier = lake.new_applier("checkpoint-1")
    (report,) = lake.apply(0, batch)
    assert (1, 0, version) == (report.counters.skipped, report.counters.commits, lake.version())
    hint.unlink()
    assert version == lake.version()
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2)])
    assert [{"id": 1, "a": "y"}] == lake.rows()


def test_as_of(lake: MergingLake) -> None:
    """The table is read as of an earlier time, and is empty before its creation."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    before = datetime.now(UTC)
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    between = datetime.now(UTC)
    lake.apply(1, [change("d", {"id": 1}, pos=2)])
    assert lake.tables.as_of(NAME, before) is None
    then, now = lake.tables.as_of(NAME, between), lake.tables.open(NAME)
    assert isinstance(then, MirrorTable)
    assert isinstance(now, MirrorTable)
    assert ({(1,)}, set()) == (set(then.written()), set(now.written()))


def test_a_table_of_the_other_format(lake: MergingLake) -> None:
    """The table is neither converted nor duplicated in its folder. A start is rejected, and an event parks it."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    said = r"the table shop_sales\.orders has format iceberg, but tables\.formats requests delta"
    lake.use(TableRules())
    with pytest.raises(ConfigError, match=said):
        check_tables([NAME], lake.tables, lake.rules)
    (report,) = lake.apply(1, [change("c", {"id": 2}, {"a": "x"}, pos=2)])
    assert re.match(said, refusal(report))
    lake.use(ICEBERG)
    check_tables([NAME], lake.tables, lake.rules)
    assert lake.command("resume", NAME).error is None
    assert [1, 2] == [row["id"] for row in lake.rows()]


def test_only_files_near_a_late_event_are_read(lake: MergingLake) -> None:
    """Statistics of positions are complete, so a batch does not read a changelog from the beginning."""
    lake.use(TableRules(formats={"*": Format.ICEBERG}, modes={"*": Mode.CHANGELOG}))
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    events = [change("c", {"id": id}, {"a": "x"}, pos=id, scope="native:shop/t") for id in range(1, 7)]
    for batch in range(3):
        lake.apply(batch, events[2 * batch : 2 * batch + 2])
    table = StaticTable.from_metadata(lake.path())
    found = [len(list(table.scan(within({POS: (pos, pos)})).plan_files())) for pos in (events[0].pos, events[5].pos)]
    assert [1, 1] == found
    (report,) = lake.apply(3, [events[0], change("c", {"id": 9}, {"a": "y"}, pos=9, scope="native:shop/t")])
    assert (1, {"duplicate": 1}) == (report.counters.rows, report.counters.stale)


def test_maintained(lake: MergingLake) -> None:
    """C19: many files become one, and old snapshots are removed with their files. Rows and markers remain, even if
    another program expires the last snapshot with markers. Every snapshot that was current in the kept days remains.
    """
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    batches = [[change("c", {"id": id}, {"a": "x"}, pos=id), change("d", {"id": id - 1}, pos=id)] for id in range(1, 6)]
    for number, batch in enumerate(batches):
        lake.apply(number, batch)
    files = FormatMaintenance(lake.tables, lake.spark)
    before = files.files(NAME)
    assert before is not None
    assert len(before.sizes) >= 5
    assert f"compact {NAME}, vacuum {NAME}" == lake.command("maintain").result
    after = files.files(NAME)
    assert after is not None
    assert (1, [{"id": 5, "a": "x"}]) == (len(after.sizes), lake.rows())
    (report,) = lake.apply(4, batches[4])
    assert 1 == report.counters.skipped
    history = StaticTable.from_metadata(lake.path()).metadata.snapshots
    assert before.version in [snapshot.snapshot_id for snapshot in history]
    assert files.vacuum(NAME, 0) >= 5
    left = StaticTable.from_metadata(lake.path()).metadata.snapshots
    assert [after.version] == [snapshot.snapshot_id for snapshot in left]
    with pytest.raises(FatalError, match="do not reach back"):
        lake.tables.as_of(NAME, datetime.fromtimestamp(history[0].timestamp_ms / 1000, UTC))
    rewrite_as_others(lake.spark, lake, expires=True)
    (report,) = lake.apply(4, batches[4])
    assert (1, [{"id": 5, "a": "x"}]) == (report.counters.skipped, lake.rows())
    lake.apply(5, [change("u", {"id": 5}, {"a": "y"}, pos=9)])
    assert [{"id": 5, "a": "y"}] == lake.rows()


def test_files_of_writers_that_died(lake: MergingLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreferenced file is removed when it is older than the retention of snapshots. Younger files, files of a table
    whose name extends this one's, and files of kept snapshots remain.
    """
    # A sink with another pipeline does not know this one's tables, and can create a table inside one of them.
    monkeypatch.setattr(driver, "forbidden_tables", lambda *_, **__: {})
    inner = f"{NAME}.data.more"
    for name in ("orders", "more"):
        lake.announce(schema_of({"id": "int64", "a": "string"}, table=name))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    held = lake.version()
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2)])
    files = FormatMaintenance(lake.tables, lake.spark)
    left = [_left_behind(lake, pattern) for pattern in ("data/*.parquet", "data/*.puffin", "metadata/*-m0.avro")]
    assert 0 == files.vacuum(NAME, 7)
    for one in left:
        _age(one)
    lake.use(ICEBERG, {"shop/sales//more": inner})
    lake.apply(2, [change("c", {"id": 1}, {"a": "inner"}, pos=1, table="more")])
    inside = [file for file in Path(lake.path(inner)).rglob("*") if file.is_file()]
    for one in inside:
        _age(one)
    assert 1 == files.vacuum(NAME, 7)  # a place without any other table
    assert [True, True, False] == [one.exists() for one in left]
    assert all(one.exists() for one in inside)
    shutil.rmtree(lake.path(f"{NAME}.data.more"))
    assert 2 == files.vacuum(NAME, 7)
    assert not any(one.exists() for one in left)
    assert [["x"], ["y"]] == [lake.stored(version=version).column("a").to_pylist() for version in (held, None)]
    lake.apply(3, [change("u", {"id": 1}, {"a": "z"}, pos=3)])
    assert [{"id": 1, "a": "z"}] == lake.rows()


def test_buckets(lake: MergingLake) -> None:
    """Files are partitioned by a hash of the key, and a lookup opens only the buckets of its keys. Each bucket is
    compacted separately, once one of them has enough small files. An existing table keeps its layout, which
    is logged.
    """
    lake.use(replace(ICEBERG, buckets={"*.orders": 4}))
    for table in ("orders", "customers"):
        lake.announce(schema_of({"id": "string", "a": "string"}, table=table))
    lake.apply(0, [change("c", {"id": f"key {id}"}, {"a": "x"}, pos=id) for id in range(40)])
    lake.apply(1, [change("c", {"id": "1"}, {"a": "x"}, pos=1, table="customers")])
    moved = change("u", {"id": "key 99"}, {"a": "y"}, pos=50, full=False, key_old={"id": "key 7"})
    lake.apply(2, [moved, change("d", {"id": "key 8"}, pos=51)])
    kept = {*range(40), 99} - {7, 8}
    assert kept == {int(row["id"].split()[1]) for row in lake.rows()}
    one = near(reach_of([("key 3",)], ["id"]), {"id": "string"})
    opened = StaticTable.from_metadata(lake.path()).scan(one).plan_files()
    assert 1 == len({Path(task.file.file_path).parent for task in opened})
    files = FormatMaintenance(lake.tables, lake.spark)
    found = files.files(NAME)
    assert found is not None
    few = MaintenanceRules(small_files=max(Counter(found.partitions).values()) + 1)
    assert (4, []) == (len({*found.partitions}), due(found, few, vacuumed=0.0, now=0.0))
    files.compact(NAME, 1 << 20)
    compacted = files.files(NAME)
    assert compacted is not None
    assert len(found.sizes) > len(compacted.sizes) == 4
    lake.use(replace(ICEBERG, buckets={"*": 8}))
    with capture_logs() as logs:
        again = change("u", {"id": "1"}, {"a": "z"}, pos=2, table="customers")
        lake.apply(3, [again, change("d", {"id": "key 1"}, pos=60)])
    said = {line["table"]: line["reason"] for line in logs if line["event"] == "engine chosen"}
    assert "already has 4 buckets, because tables.buckets (8) only applies to new tables" in said[NAME]
    assert "already has no buckets" in said["shop_sales.customers"]
    assert kept - {1} == {int(row["id"].split()[1]) for row in lake.rows()}
    assert [{"id": "1", "a": "z"}] == lake.rows("shop_sales.customers")


def _left_behind(lake: MergingLake, pattern: str) -> Path:
    """Leave a file like that of a writer that dies before its commit."""
    made = next(Path(lake.path()).glob(pattern))
    return Path(shutil.copy(made, made.with_name(f"died-{made.name}")))


def _age(file: Path) -> None:
    """Set its time to eight days ago."""
    then = time.time() - 8 * 86_400
    os.utime(file, (then, then))


def test_another_engine(lake: MergingLake) -> None:
    """A table assigned to another engine is parked."""
    lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1)])
    lake.use(TableRules(formats={"*": Format.ICEBERG}, engines=EngineRules({"*": Engine.FUSED})))
    lake.apply(1, [change("u", {"id": 1}, {"a": "y"}, pos=2)])
    assert [("TABLE_REFUSED", 0)] == lake.parked()
