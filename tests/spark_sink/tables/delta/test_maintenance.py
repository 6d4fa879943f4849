"""Maintenance of real Delta tables keeps rows, markers and promised versions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from spark_sink.tables.delta.maintenance import DeltaMaintenance
from spark_sink.tables.maintenance import Compacted, MaintenanceError, TableFiles
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

NAME = "s.t"
MEBIBYTE = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> DeltaMaintenance:
    return DeltaMaintenance(str(tmp_path))


def _append(folder: Path, *numbers: int) -> None:
    for number in numbers:
        marker = CommitProperties(app_transactions=[Transaction("app", number)])
        write_deltalake(folder / "s" / "t", pa.table({"a": [number]}), mode="append", commit_properties=marker)


def _rows(folder: Path, version: int | None = None) -> list[int]:
    found: list[int] = DeltaTable(folder / "s" / "t", version=version).to_pyarrow_table()["a"].to_pylist()
    return sorted(found)


def test_what_a_log_tells(files: DeltaMaintenance, tmp_path: Path) -> None:
    """The log contains the sizes of current files, the commits since the last checkpoint, and the retention of removed
    files, by default or as set by the table.
    """
    assert files.files(NAME) is None
    _append(tmp_path, 0, 1, 2)
    found = files.files(NAME)
    assert found is not None
    sizes = sorted(path.stat().st_size for path in (tmp_path / "s" / "t").glob("*.parquet"))
    assert TableFiles(2, sizes, 3, 7.0) == found._replace(sizes=sorted(found.sizes), created=None)
    assert found.created == pytest.approx(datetime.now(UTC).timestamp(), abs=3600)
    files.checkpoint(NAME)
    files.remember(NAME, 21)
    found = files.files(NAME)
    assert found is not None
    assert (3, 1, 21.0) == (found.version, found.unsaved, found.remembered_days)
    DeltaTable(tmp_path / "s" / "t").alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 2 weeks"}
    )
    found = files.files(NAME)
    assert found is not None
    assert 14.0 == found.remembered_days


def test_partitions_that_python_lacks(files: DeltaMaintenance, tmp_path: Path) -> None:
    """Another program may have added the year 10000, or a year before 1."""
    days = pa.array([2_932_897, -800_000, 0, None], pa.int32())
    times = pc.multiply(days.cast(pa.int64()), 86_400_000_000).cast(pa.timestamp("us", "UTC"))
    written = pa.table({"a": [1, 2, 3, 4], "on": days.cast(pa.date32()), "at": times})
    write_deltalake(tmp_path / "s" / "t", written, partition_by=["on", "at"])
    found = files.files(NAME)
    assert found is not None
    assert (4, 4) == (len(found.partitions), len({*found.partitions}))


def test_compaction_keeps_rows_and_marker(files: DeltaMaintenance, tmp_path: Path) -> None:
    """Small files become one, up to a size. Readers of the previous version are not affected."""
    _append(tmp_path, *range(20))
    held = DeltaTable(tmp_path / "s" / "t")
    assert Compacted(20, 1) == files.compact(NAME, 16 * MEBIBYTE)
    assert Compacted(0, 0) == files.compact(NAME, 16 * MEBIBYTE)
    assert list(range(20)) == _rows(tmp_path) == sorted(held.to_pyarrow_table()["a"].to_pylist())
    assert 19 == DeltaTable(tmp_path / "s" / "t").transaction_version("app")


def test_values_of_every_type_stay(lake: Lake, tmp_path: Path) -> None:
    """Compaction changes no value that the sink wrote, in any mode."""
    types = ["boolean", "int8", "int64", "uint64", "decimal(38,10)", "float32", "float64", "bytes", "date"]
    types += ["timestamp", "timestamptz", "string", "json"]
    schema = lake.announce(schema_of({"id": "int64", **{f"c{n}": type for n, type in enumerate(types)}}))
    values = [True, -128, -(2**63), str(2**64 - 1), "-" + "9" * 28 + ".0000000001", 1.5, -0.0, "/w==", "0001-01-01"]
    values += ["9999-12-31T23:59:59.999999", "1582-10-04T00:00:00Z", "\0\U0010ffff", '{"a": 1}']
    for batch in range(3):
        row = {f"c{n}": value if batch else None for n, value in enumerate(values)}
        lake.apply(batch, [change("c", {"id": batch}, row, pos=batch + 1, schema=schema)])
    before = DeltaTable(lake.path()).to_pyarrow_table().sort_by("id")
    assert 1 == DeltaMaintenance(str(lake.warehouse)).compact("shop_sales.orders", MEBIBYTE).added
    after = DeltaTable(lake.path()).to_pyarrow_table().sort_by("id")
    assert before.equals(after, check_metadata=False)
    assert [] == lake.quarantine()
    lake.apply(3, [change("u", {"id": 1}, {"c0": False}, pos=9, full=False, schema=schema)])
    assert [None, False, True] == [row["c0"] for row in lake.rows()]


def test_vacuum_keeps_versions_of_the_kept_days(files: DeltaMaintenance, tmp_path: Path) -> None:
    """A file removed before the kept days is deleted, and with it the versions that used it. A file of the same age
    that was removed later remains, and so do unknown files in the folder.
    """
    files.files(NAME)
    _append(tmp_path, 0, 1)
    files.compact(NAME, MEBIBYTE)
    _append(tmp_path, 2)
    files.compact(NAME, MEBIBYTE)
    stranger = tmp_path / "s" / "t" / "u" / "part-0.parquet"
    stranger.parent.mkdir()
    stranger.write_bytes(b"another table's")
    assert 0 == files.vacuum(NAME, 7)
    _happened_earlier(tmp_path / "s" / "t", 2, timedelta(days=8))
    assert 2 == files.vacuum(NAME, 7)
    assert ([0, 1], [0, 1, 2], [0, 1, 2]) == (_rows(tmp_path, 2), _rows(tmp_path, 3), _rows(tmp_path))
    with pytest.raises(OSError, match=r"parquet"):
        _rows(tmp_path, 1)
    assert b"another table's" == stranger.read_bytes()


def _happened_earlier(table: Path, version: int, ago: timedelta) -> None:
    """Change the time of a commit's removals in its log."""
    commit = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = int((datetime.now(UTC) - ago).timestamp() * 1000)
    commit.write_text("\n".join(map(json.dumps, actions)))


def test_who_comes_second(tmp_path: Path) -> None:
    """A compaction that a delete overtakes fails with our own error. The deleted row remains deleted."""
    _append(tmp_path, *range(4))

    class Overtaken(DeltaMaintenance):
        def _open(self, name: str) -> DeltaTable:
            opened = super()._open(name)
            DeltaTable(tmp_path / "s" / "t").delete("a = 1")
            return opened

    with pytest.raises(MaintenanceError, match=r"^s\.t: "):
        Overtaken(str(tmp_path)).compact(NAME, MEBIBYTE)
    assert [0, 2, 3] == _rows(tmp_path)


def test_a_table_of_unknown_features(tmp_path: Path, files: DeltaMaintenance) -> None:
    """The error names what deltalake cannot write."""
    properties = {"delta.enableDeletionVectors": "true"}
    DeltaTable.create(tmp_path / "s" / "t", pa.schema([pa.field("a", pa.int64())]), configuration=properties)
    found = files.files(NAME)
    assert found is not None
    assert ["deletionVectors"] == list(found.foreign)
