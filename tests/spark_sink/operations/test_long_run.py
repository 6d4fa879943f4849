"""Five hundred batches in a row with maintenance between them, readers and cuts held: an hour's, without its pauses."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from spark_sink.apply.rejects import MAX_SEGMENTS
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables.batches import BATCHES as BATCH_BOOK
from spark_sink.control_tables.cut import fold
from spark_sink.operations.maintenance import UNSAVED
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

BATCHES = 500
TABLE = "shop_sales.orders"
RULES = MaintenanceRules(small_files=16, every_seconds=0, budget_seconds=60)

# A row of the table is new in every second batch; in the others one of ten is changed, which writes a file again.
ROWS = 10


@pytest.mark.faults
def test_files_and_log_stay_small(lake: Lake) -> None:
    """Files, and commits that are read to open a table, are as few after five hundred batches as after fifty; what a
    reader holds and every cut stays readable; each table knows its last commit."""
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    maintenance = lake.maintenance(RULES)
    held: dict[int, DeltaTable] = {}
    most = 0
    for batch in range(BATCHES):
        key = batch if batch % 2 else batch % ROWS
        (report,) = lake.apply(batch, [change("u", {"id": key}, {"n": batch}, pos=batch + 1, schema=schema)])
        assert 1 == report.counters.commits
        maintenance.applied([report])
        if maintenance.is_due():
            maintenance.turn()
        if batch % 100 == 50:
            held[batch] = DeltaTable(lake.path())
            most = max(most, *(len(DeltaTable(lake.path(name)).file_uris()) for name in (TABLE, BATCH_BOOK)))
    assert most < 2 * RULES.small_files

    def rows(batch: int) -> int:
        return len({number if number % 2 else number % ROWS for number in range(batch + 1)})

    for batch, reader in held.items():
        assert rows(batch) == reader.to_pyarrow_table().num_rows
    manifest = lake.books.batches.rows()
    for batch in (0, 99, 250, BATCHES - 1):
        version = fold(manifest, "canonical", batch).versions[TABLE]
        assert rows(batch) == DeltaTable(lake.path(), version=version).to_pyarrow_table().num_rows
    newest = DeltaTable(lake.path())
    assert BATCHES - 1 == (newest.transaction_version(f"test/checkpoint-1/{TABLE}") or 0) // MAX_SEGMENTS
    checkpoints = sorted((lake.warehouse / "shop_sales" / "orders" / "_delta_log").glob("*.checkpoint.parquet"))
    assert newest.version() - int(checkpoints[-1].name.split(".")[0]) <= 2 * UNSAVED
