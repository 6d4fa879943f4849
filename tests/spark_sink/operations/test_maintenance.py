"""When each maintenance step is due, and turns over the tables of a sink."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable

from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables.cut import fold
from spark_sink.control_tables.maintenance import StepDone
from spark_sink.operations.maintenance import FIRST_TARGET, OWN_TABLES, UNSAVED, DueStep, Step, due
from spark_sink.tables.maintenance import DEFAULT_TARGET, TableFiles
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

DAY = 86_400.0
MEBIBYTE = 1 << 20
RULES = MaintenanceRules(small_files=4, every_seconds=0)
TABLE = "shop_sales.orders"


def _steps(sizes: list[int], *, unsaved: int = 0, remembered: float = 30, vacuumed: float | None = 0.0) -> list[Step]:
    return [one.step for one in due(TableFiles(9, sizes, unsaved, remembered), RULES, vacuumed, now=0.0)]


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ([1] * 3, None),
        ([1] * 4, FIRST_TARGET),
        ([2 * MEBIBYTE] * 3 + [1] * 3, DEFAULT_TARGET),
        ([15 * MEBIBYTE] * 4, DEFAULT_TARGET),
        ([16 * MEBIBYTE] * 40 + [1] * 3, None),
    ],
    ids=["few", "small", "small and middle", "middle", "large"],
)
def test_what_is_compacted(sizes: list[int], target: int | None) -> None:
    """Compaction depends on the number of small files, for each size in turn. A file is rewritten only when at least as
    much can be added to it.
    """
    found = due(TableFiles(9, sizes, 0, 30), RULES, 0.0, now=0.0)
    assert [target] * (target is not None) == [one.target_bytes for one in found]


def test_the_target_of_a_table() -> None:
    """A table with a smaller target merges only files that are smaller than an eighth of it."""
    files = TableFiles(9, [MEBIBYTE] * 4, 0, 30, target_bytes=8 * MEBIBYTE)
    assert [] == due(files, RULES, 0.0, now=0.0)
    (found,) = due(files._replace(sizes=[MEBIBYTE - 1] * 4), RULES, 0.0, now=0.0)
    assert 8 * MEBIBYTE == found.target_bytes


def test_files_of_several_partitions() -> None:
    """Files are merged within their partition, so one partition must have enough small files."""
    files = TableFiles(9, [1] * 5, 0, 30, partitions=["a", "b", "a", "b", "a"])
    assert [] == due(files, RULES, 0.0, now=0.0)
    assert 1 == len(due(files._replace(partitions=["a", "b", "a", "a", "a"]), RULES, 0.0, now=0.0))


def test_what_is_due() -> None:
    """A checkpoint is due after a number of commits, a longer retention of removed files once, and vacuum daily. A
    table with unknown features gets no maintenance.
    """
    assert [] == _steps([1] * 3, unsaved=UNSAVED - 1, vacuumed=1 - DAY)
    assert [Step.CHECKPOINT, Step.VACUUM] == _steps([], unsaved=UNSAVED, vacuumed=-DAY)
    assert [Step.REMEMBER, Step.VACUUM] == _steps([], remembered=20, vacuumed=None)
    assert [] == due(TableFiles(9, [1] * 99, 99, 1, ["deletionVectors"]), RULES, None, now=0.0)


def _work(lake: Lake, batches: range) -> None:
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    for batch in batches:
        events = [change("c", {"id": batch}, {"n": batch}, pos=batch + 1, schema=schema)]
        lake.apply(batch, events)


def test_files_stay_few(lake: Lake) -> None:
    """However many batches run, the sink's and the table's files stay few and a checkpoint is near. No data is lost,
    and every batch can still be cut.
    """
    maintenance, schema = lake.maintenance(RULES), lake.announce(schema_of({"id": "int64", "n": "int32"}))
    for batch in range(60):
        reports = lake.apply(batch, [change("c", {"id": batch}, {"n": batch}, pos=batch + 1, schema=schema)])
        maintenance.applied(reports)
        if maintenance.is_due():
            maintenance.turn()
    for name in (TABLE, "_cdc.batches"):
        files = DeltaTable(lake.path(name))
        assert len(files.file_uris()) < 2 * RULES.small_files, name
        assert list(lake.warehouse.joinpath(*name.split("."), "_delta_log").glob("*.checkpoint.parquet")), name
    assert sorted(({"id": n, "n": n} for n in range(60)), key=lambda row: str(row["id"])) == lake.rows()
    for batch in (0, 30, 59):
        version = fold(lake.control.batches.rows(), "canonical", batch).versions[TABLE]
        assert batch + 1 == DeltaTable(lake.path(), version=version).to_pyarrow_table().num_rows
    assert 60 > DeltaTable(lake.path()).transaction_version(f"test/checkpoint-1/{TABLE}") // 4096 >= 0


def test_a_turn_keeps_to_its_budget(lake: Lake) -> None:
    """A turn starts no step after its time limit, the next one continues there, and each table gets its turn. Completed
    steps are remembered across restarts. The first vacuum waits for a day.
    """
    _work(lake, range(5))
    maintenance = lake.maintenance(MaintenanceRules(small_files=4, every_seconds=0, budget_seconds=1e-9))
    maintenance.turn()
    assert maintenance.is_due()
    turns = 0
    while maintenance.is_due():
        maintenance.turn()
        turns += 1
    assert turns >= len(OWN_TABLES)
    done = DeltaTable(lake.path("_cdc.maintenance")).to_pyarrow_table().to_pylist()
    assert {"compact"} <= {row["step"] for row in done if row["table"] == TABLE}
    assert "vacuum" not in {row["step"] for row in done if row["table"] == TABLE}
    again = lake.maintenance(RULES, lambda: time.time() + DAY)
    while again.is_due():
        again.turn()
    done = DeltaTable(lake.path("_cdc.maintenance")).to_pyarrow_table().to_pylist()
    assert "vacuum" in {row["step"] for row in done if row["table"] == TABLE}
    assert [] == [step for name, step in again.planned([TABLE]) if step.step is not Step.COMPACT]


def test_only_its_own(lake: Lake) -> None:
    """When switched off, the sink does not maintain source tables."""
    _work(lake, range(5))
    maintenance = lake.maintenance(MaintenanceRules(enabled=False, every_seconds=0))
    maintenance.turn()
    assert list(OWN_TABLES) == maintenance.tables()
    assert 5 == len(DeltaTable(lake.path()).file_uris())


def test_by_hand(lake: Lake) -> None:
    """The command shows what is due, does it for one or all tables, and then has nothing to do."""
    _work(lake, range(3))
    planned = dict(lake.maintenance().planned([TABLE]))
    assert {TABLE} == planned.keys()
    assert "files compacted" not in (lake.command("maintain").result or "")
    assert 1 == len(DeltaTable(lake.path()).file_uris())
    assert "nothing to do" == lake.command("maintain").result
    _work(lake, range(3, 6))
    request = lake.command("maintain", "*")
    assert request.error is None
    assert f"compact {TABLE}" in (request.result or "")
    failed = lake.command("maintain", "shop_sales.orderz")
    assert "table 'shop_sales.orderz' does not exist" == failed.error


def test_a_table_that_fails_is_left(lake: Lake) -> None:
    """The failure is counted, and other tables get their turn."""
    _work(lake, range(5))
    for commit in lake.warehouse.joinpath("shop_sales", "orders", "_delta_log").glob("*.json"):
        commit.write_text("{")
    maintenance = lake.maintenance(MaintenanceRules(small_files=4, every_seconds=0))
    maintenance.turn()
    done = DeltaTable(lake.path("_cdc.maintenance")).to_pyarrow_table()["table"].to_pylist()
    assert "_cdc.batches" in done
    assert TABLE not in done
    assert 1 == lake.metrics.registry.get_sample_value("cdc_sink_maintenance_failures_total")


def test_what_expires(lake: Lake) -> None:
    """Expiry merges batches before the kept days into one row, which changes neither cuts nor offsets. It removes ended
    commands and completed steps and keeps everything that is still needed.
    """
    _work(lake, range(6))
    lake.command("park")
    control = lake.control
    before = fold(control.batches.rows(), "canonical"), control.batches.reached(), control.batches.tables()
    assert 4 == control.batches.fold_before(time.time() + DAY)
    assert before == (fold(control.batches.rows(), "canonical"), control.batches.reached(), control.batches.tables())
    assert 0 == control.batches.fold_before(time.time() + DAY)
    open_id = control.requests.ask("resume", TABLE)
    assert 0 == control.requests.forget_before(time.time() + DAY)
    lake.requests().run()
    assert 4 == control.requests.forget_before(time.time() + DAY)
    assert [] == control.requests.requests()
    assert open_id
    control.maintenance.write([StepDone(TABLE, "vacuum", 1)])
    assert 0 == control.maintenance.forget_before(time.time() - DAY)
    assert 1 == control.maintenance.forget_before(time.time() + DAY)


def test_expiry_comes_once_a_day(lake: Lake) -> None:
    """The turns' clock decides."""
    _work(lake, range(3))
    clock = [datetime.now(UTC).timestamp()]
    maintenance = lake.maintenance(RULES, lambda: clock[0])
    names = ["_cdc.batches"]
    first = [one.step for one in maintenance.by_hand(names).done]
    assert Step.EXPIRE in first
    assert Step.EXPIRE not in [one.step for one in maintenance.by_hand(names).done]
    clock[0] += 8 * DAY
    assert DueStep(Step.EXPIRE, "a day has passed") in [step for _, step in maintenance.planned(names)]
    expired = [one for one in maintenance.by_hand(names).done if one.step == Step.EXPIRE]
    assert [1] == [one.removed for one in expired]


def test_a_sweep_of_a_time_whose_files_are_gone(lake: Lake) -> None:
    """It is rejected with the setting for the retention of files, and no row is deleted."""
    _work(lake, range(2))
    then = datetime.now(UTC)
    _work(lake, range(2, 4))
    assert 1 == len(lake.maintenance(RULES).by_hand([TABLE]).done[:1])
    DeltaTable(lake.path()).vacuum(0, dry_run=False, enforce_retention_duration=False)
    refused = lake.command("sweep", TABLE, then.isoformat())
    assert refused.error is not None
    assert refused.error.startswith(
        f"the table's files as of {then.isoformat()} have been removed (maintenance.keep_days)"
    )
    assert 4 == len(lake.rows())
