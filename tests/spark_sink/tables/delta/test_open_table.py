"""The markers in a Delta table's log, read from its newest commit where possible."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from spark_sink.tables.delta.open_table import DeltaOpened, hooks, markers_of_newest_commit
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

NAME, ROWS = "shop_sales.orders", pa.table({"id": [1]})


def _commit(path: Path, **markers: int) -> None:
    made = [Transaction(app, version) for app, version in markers.items()]
    write_deltalake(path, ROWS, mode="append", commit_properties=CommitProperties(app_transactions=made))


def test_markers_of_several_commits(tmp_path: Path) -> None:
    """The newest commit decides for its own markers. Older commits decide for all others."""
    for commits in ({"a": 1, "b": 5}, {"a": 2}, {"c": 3}, {}):
        _commit(tmp_path, **commits)
        table = DeltaTable(tmp_path)
        assert commits == markers_of_newest_commit(table)
        opened = DeltaOpened(table, None, None)  # type: ignore[arg-type] # neither is needed for markers
        for app in ("a", "b", "c", "d"):
            assert table.transaction_version(app) == opened.applied(app)


def test_a_commit_made_since(tmp_path: Path) -> None:
    """After each commit of the opened table, its newest commit is another one."""
    _commit(tmp_path, a=1)
    table = DeltaTable(tmp_path)
    opened = DeltaOpened(table, None, None)  # type: ignore[arg-type] # neither is needed for markers
    assert 1 == opened.applied("a")
    made = CommitProperties(app_transactions=[Transaction("a", 2)])
    write_deltalake(table, ROWS, mode="append", commit_properties=made)
    assert 2 == opened.applied("a")


def test_a_log_without_the_newest_commit(tmp_path: Path) -> None:
    """A checkpoint may replace all commits up to the table's version."""
    _commit(tmp_path, a=1)
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / f"_delta_log/{0:020}.json").unlink()
    table = DeltaTable(tmp_path)
    assert {} == markers_of_newest_commit(table)
    assert 1 == DeltaOpened(table, None, None).applied("a")  # type: ignore[arg-type] # neither is needed for markers


def test_a_marker_with_a_time(tmp_path: Path) -> None:
    """Only deltalake decides whether such a marker has expired."""
    _commit(tmp_path, a=1, b=2)
    log = tmp_path / f"_delta_log/{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (marker,) = (line["txn"] for line in lines if line.get("txn", {}).get("appId") == "a")
    marker["lastUpdated"] = 1
    log.write_text("\n".join(map(json.dumps, lines)))
    assert {"b": 2} == markers_of_newest_commit(DeltaTable(tmp_path))


def test_a_batch_reads_the_log_for_no_marker(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest commit has all markers that the next batch looks up, even if it deleted no row."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    asked: list[str] = []
    ask = DeltaTable.transaction_version

    def counted(table: DeltaTable, app: str) -> Any:
        if "shop_sales" in table.table_uri:
            asked.append(app)
        return ask(table, app)

    for batch, op in enumerate("cuduu"):
        asked.clear()
        with monkeypatch.context() as patched:
            patched.setattr(DeltaTable, "transaction_version", counted)
            values = None if op == "d" else {"a": f"{batch}"}
            lake.apply(batch, [change(op, {"id": 1}, values, pos=batch, schema=schema)])
        assert bool(asked) == (batch == 0)
    generation = DeltaTable(lake.path(NAME)).transaction_version("cdc.deleted")
    assert generation
    assert generation == markers_of_newest_commit(DeltaTable(lake.path(NAME)))["cdc.deleted"]


def test_expired_commits_are_deleted_with_a_checkpoint(tmp_path: Path) -> None:
    """Commits expire only once a checkpoint contains them, so deltalake looks for them only then."""
    properties = {"delta.checkpointInterval": "10", "delta.logRetentionDuration": "interval 1 days"}
    table, log = DeltaTable.create(tmp_path, ROWS.schema, configuration=properties), tmp_path / "_delta_log"
    first, looked = [], []
    for _ in range(31):
        then = hooks(table)
        write_deltalake(table, ROWS, mode="overwrite", post_commithook_properties=then)
        if then.cleanup_expired_logs is not False:
            looked.append(table.version())
        for file in log.iterdir():
            os.utime(file, (time.time() - 9 * 86_400,) * 2)
        first.append(min(int(commit.stem) for commit in log.glob("*.json")))
    assert [9, 19, 29] == looked
    assert [0] * 8 + [9] * 10 + [19] * 10 + [29] * 3 == first
