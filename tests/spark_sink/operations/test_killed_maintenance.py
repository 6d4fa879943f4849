"""Killing maintenance loses nothing of a table, and the next turn does the rest."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables.cut import fold
from spark_sink.operations.maintenance import Step
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

TABLE = "shop_sales.orders"

# A turn in a separate process that kills itself a given time after the begin of a step.
PROGRAM = """
import os, signal, sys, threading, time
from spark_sink.config.maintenance_rules import MaintenanceRules
from spark_sink.control_tables.batches import ControlTables
from spark_sink.metrics import Metrics
from spark_sink.operations.maintenance import Maintenance
from spark_sink.tables.delta.maintenance import DeltaMaintenance

warehouse, wanted, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])

class Dying(Maintenance):
    def _carry_out(self, name, due):
        if due.step == wanted:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        done = super()._carry_out(name, due)
        if due.step == wanted:
            time.sleep(60)
        return done

control = ControlTables(warehouse, "test", "checkpoint-1", "canonical")
rules = MaintenanceRules(small_files=2, budget_seconds=60)
later = lambda: time.time() + 40 * 86_400
Dying(DeltaMaintenance(warehouse), control, rules, Metrics(0), later).turn()
"""


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of an older sink after 60 batches and two commands, with every step due."""
    lake = Lake(tmp_path_factory.mktemp("worked") / "warehouse")
    _work(lake, 0)
    DeltaTable(lake.path(TABLE)).alter.set_table_properties({"delta.checkpointInterval": "100"})  # deltalake's default
    for batch in range(1, 60):
        _work(lake, batch)
    for name in (TABLE, "_cdc.batches"):
        properties = {"delta.deletedFileRetentionDuration": "interval 7 days"}
        DeltaTable(lake.path(name)).alter.set_table_properties(properties)
    lake.command("park", TABLE)
    lake.command("resume", TABLE)
    return lake.warehouse


def _work(lake: Lake, batch: int) -> None:
    schema = lake.announce(schema_of({"id": "int64", "n": "int32"}))
    lake.apply(batch, [change("c", {"id": batch}, {"n": batch}, pos=batch + 1, schema=schema)])


@pytest.mark.faults
@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.02], ids=["at once", "2 ms", "5 ms", "20 ms"])
@pytest.mark.parametrize("step", list(Step))
def test_killed_in_a_step(worked: Path, tmp_path: Path, step: Step, delay: float) -> None:
    """After SIGKILL in each step, every row exists once, batch versions are readable, and the sink continues."""
    warehouse = tmp_path / "warehouse"
    shutil.copytree(worked, warehouse)
    command = [sys.executable, "-c", PROGRAM, str(warehouse), step.value, str(delay)]
    killed = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert -signal.SIGKILL == killed.returncode, killed.stderr.decode()
    lake = Lake(warehouse)
    wanted = [{"id": n, "n": n} for n in range(60)]
    assert wanted == _rows(lake)
    maintenance = lake.maintenance(MaintenanceRules(small_files=2, every_seconds=0, budget_seconds=60))
    maintenance.turn()
    assert not maintenance.is_due()
    _work(lake, 60)
    assert [*wanted, {"id": 60, "n": 60}] == _rows(lake)
    newest = fold(lake.control.batches.rows(), "canonical")
    assert (60, DeltaTable(lake.path()).version()) == (newest.batch, newest.versions[TABLE])


def _rows(lake: Lake) -> list[dict[str, Any]]:
    return sorted(lake.rows(), key=lambda row: row["id"])
