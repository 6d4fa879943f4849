"""Hundreds of batches with maintenance between them, while readers and cuts keep versions: an hour without pauses."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest
from deltalake import DeltaTable

from cdc_core.envelope import ChangeEvent, TableSchema
from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables.batches import BATCHES as BATCH_BOOK
from spark_sink.control_tables.cut import fold
from spark_sink.operations.maintenance import UNSAVED
from spark_sink.table_report import TableReport
from spark_sink.tables.formats import FormatMaintenance
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.conftest import ICEBERG
from tests.spark_sink.lake import Lake

BATCHES = 500
TABLE = "shop_sales.orders"
RULES = MaintenanceRules(small_files=16, every_seconds=0, budget_seconds=60)

# Every second batch inserts a row. The others update one of ten, which rewrites a file.
ROWS = 10


@pytest.mark.faults
def test_files_and_log_stay_small(lake: Lake) -> None:
    """After five hundred batches, the files and the commits needed to open a table are as few as after fifty. Versions
    held by readers and every cut remain readable, and each table knows its last commit.
    """
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    maintenance = lake.maintenance(RULES)
    held: dict[int, DeltaTable] = {}
    most = 0
    for batch in range(BATCHES):
        report = _apply(lake, schema, batch)
        maintenance.applied([report])
        if maintenance.is_due():
            maintenance.turn()
        if batch % 100 == 50:
            held[batch] = DeltaTable(lake.path())
            most = max(most, *(len(DeltaTable(lake.path(name)).file_uris()) for name in (TABLE, BATCH_BOOK)))
    assert most < 2 * RULES.small_files

    for batch, reader in held.items():
        assert _rows_after(batch) == reader.to_pyarrow_table().num_rows
    manifest = lake.control.batches.rows()
    for batch in (0, 99, 250, BATCHES - 1):
        version = fold(manifest, "canonical", batch).versions[TABLE]
        assert _rows_after(batch) == DeltaTable(lake.path(), version=version).to_pyarrow_table().num_rows
    newest = DeltaTable(lake.path())
    assert BATCHES - 1 == (newest.transaction_version(f"test/checkpoint-1/{TABLE}") or 0) // MAX_SEGMENTS
    checkpoints = sorted((lake.warehouse / "shop_sales" / "orders" / "_delta_log").glob("*.checkpoint.parquet"))
    assert newest.version() - int(checkpoints[-1].name.split(".")[0]) <= 2 * UNSAVED


def _apply(lake: Lake, schema: TableSchema, batch: int) -> TableReport:
    (report,) = lake.apply(batch, [_event(schema, batch)])
    assert 1 == report.counters.commits
    return report


def _event(schema: TableSchema, batch: int) -> ChangeEvent:
    key = batch if batch % 2 else batch % ROWS
    return change("u", {"id": key}, {"n": batch}, pos=batch + 1, schema=schema)


def _rows_after(batch: int) -> int:
    return len({number if number % 2 else number % ROWS for number in range(batch + 1)})


# An hour has 360 batches. This is the part that fits into the time of a test.
ICEBERG_BATCHES = int(os.environ.get("LONG_RUN", "60"))

# Replaces the days for which snapshots are kept, and the day between two expiries.
KEPT_SECONDS, EXPIRED_EVERY = 5.0, 20


@pytest.mark.faults
@pytest.mark.parametrize("lake_of_format", [pytest.param(ICEBERG, id="Iceberg")], indirect=True)
def test_snapshots_and_files_stay_few(lake_of_format: Lake) -> None:
    """The files, snapshots and folder of an Iceberg table are bounded by the retention time and not by the number of
    batches. Every snapshot of that time is readable, and the last batch's marker is found.

    `LONG_RUN=360` in the environment runs the batches of an hour and prints the results.
    """
    lake = lake_of_format
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    maintenance, files = lake.maintenance(RULES), FormatMaintenance(lake.tables, lake.session)
    ended: dict[int, float] = {}
    seconds: list[float] = []
    for batch in range(ICEBERG_BATCHES):
        started = time.perf_counter()
        report = _apply(lake, schema, batch)
        seconds.append(time.perf_counter() - started)
        ended[batch] = time.time()
        maintenance.applied([report])
        if maintenance.is_due():
            maintenance.turn()
        if batch % EXPIRED_EVERY == EXPIRED_EVERY - 1:
            began = time.time()
            files.vacuum(TABLE, KEPT_SECONDS / 86_400)
            # The limit of the expiry is between these times. Several batches fit in between.
            most, kept = (
                [number for number, at in ended.items() if at >= now - KEPT_SECONDS] for now in (began, time.time())
            )
            _check_iceberg(lake, files, batch, kept, len(most))
            if "LONG_RUN" in os.environ:
                _print_state(lake, files, batch, seconds, time.time() - began)
            seconds = []
    last = ICEBERG_BATCHES - 1
    again = lake.new_applier("checkpoint-1")(lake.records([_event(schema, last)]), last)
    assert [1] == [report.counters.skipped for report in again]


def _check_iceberg(lake: Lake, files: FormatMaintenance, batch: int, kept: list[int], most: int) -> None:
    """Check a table after its last batch.

    Args:
        kept: the batches whose snapshots must be readable.
        most: the maximum number of batches that the retention time includes.
    """
    found = files.files(TABLE)
    assert found is not None
    assert len(found.sizes) < 2 * RULES.small_files
    snapshots = lake.iceberg().metadata.snapshots
    # The snapshot before the retention time is the newest at its beginning. A compaction is a snapshot too.
    assert len(snapshots) <= 2 * most + 2 * EXPIRED_EVERY
    manifest = lake.control.batches.rows()
    for number in kept:
        version = fold(manifest, "canonical", number).versions[TABLE]
        assert _rows_after(number) == lake.stored(version=version).num_rows
    opened = lake.tables.open(TABLE)
    assert opened is not None
    assert batch == (opened.applied(f"test/checkpoint-1/{TABLE}") or 0) // MAX_SEGMENTS


def _print_state(lake: Lake, files: FormatMaintenance, batch: int, seconds: list[float], expiry: float) -> None:
    found = files.files(TABLE)
    assert found is not None
    started = time.perf_counter()
    lake.stored()
    read = time.perf_counter() - started
    lying = sum(file.is_file() and not file.name.startswith(".") for file in Path(lake.iceberg().location()).rglob("*"))
    snapshots = len(lake.iceberg().metadata.snapshots)
    cells = (batch + 1, len(found.sizes), snapshots, lying, f"{1000 * read:.0f} ms", f"{1000 * median(seconds):.0f} ms")
    print("|", " | ".join(map(str, (*cells, f"{expiry:.1f} s"))), "|")
