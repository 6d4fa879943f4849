"""Tables of an earlier release, in which deleted rows are in the table, and the sink's columns can be in the middle."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from tarfile import open as open_tar
from typing import Any

import duckdb
import pytest

from cdc_core.envelope import ChangeEvent
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.apply.test_history_model import difference
from tests.spark_sink.apply.test_model_delta import COLUMNS, is_right
from tests.spark_sink.changes import change, schema_of, sent
from tests.spark_sink.histories import history
from tests.spark_sink.lake import Lake
from tests.spark_sink.records import record
from tests.spark_sink.sink_process import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]

# The number of histories for an acceptance run is 400.
COUNT = int(os.environ.get("MIGRATED_HISTORIES", "30"))

# The last commit before deleted rows left the tables.
EARLIER = "1306530"

_SCRIPT = """
import base64, json, sys
from pathlib import Path
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.table_spec import Mode
from tests.spark_sink.changes import schema_of
from tests.spark_sink.lake import Lake

asked = json.load(sys.stdin)
lake = Lake(Path(asked["warehouse"]))
lake.use(TableRules(all_scopes=True, modes={"*": Mode(asked["mode"])}))
for number, (schemas, batch) in enumerate(asked["batches"]):
    for table, columns in schemas:
        lake.announce(schema_of(columns, table=table))
    lake.apply(number, [base64.b64decode(value) for value in batch])
"""

Batch = tuple[Sequence[tuple[str, dict[str, str]]], Sequence[ChangeEvent]]
"""Schemas that become known before the batch, by table, and the batch's events."""

WriteEarlier = Callable[[Lake, Sequence[Batch]], None]


@pytest.fixture(scope="module")
def write_earlier(tmp_path_factory: pytest.TempPathFactory) -> WriteEarlier:
    """Return a function that applies batches to a lake with the code of the earlier release."""
    folders = ("spark_sink", "cdc_core", "translator", "tests", "dev")
    packed = subprocess.run(["git", "-C", ROOT, "archive", EARLIER, *folders], capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this checkout does not have the commit {EARLIER}")
    release = tmp_path_factory.mktemp("earlier")
    with open_tar(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(release, filter="data")

    def write(lake: Lake, batches: Sequence[Batch]) -> None:
        mode = lake.rules.modes.get("*", Mode.MIRROR)
        told = [
            (schemas, [base64.b64encode(record(event)).decode() for event in events]) for schemas, events in batches
        ]
        ended = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            input=json.dumps({"warehouse": str(lake.warehouse), "mode": mode, "batches": told}),
            env={"PYTHONPATH": str(release)},
            cwd=release,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert 0 == ended.returncode, ended.stderr[-3000:]

    return write


@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_any_delivery_across_the_upgrade(lake: Lake, write_earlier: WriteEarlier, mode: Mode) -> None:
    """The earlier release applies the first batches of many histories, and this one the others. The tables equal those
    of a plain fold, without a filter.
    """
    lake.use(TableRules(all_scopes=True, modes={"*": mode}))
    histories = [made for seed in range(COUNT) if len((made := history(seed)).batches) > 1]
    schemas = [(made.table, COLUMNS) for made in histories]
    for table, columns in schemas:
        lake.announce(schema_of(columns, table=table))
    first = [made.batches[: len(made.batches) // 2] for made in histories]
    rest = [made.batches[len(made.batches) // 2 :] for made in histories]

    def together(parts: Sequence[Sequence[Any]]) -> list[list[ChangeEvent]]:
        rounds = zip_longest(*parts, fillvalue=())
        return [
            [sent(e, made.table) for made, batch in zip(histories, one, strict=True) for e in batch] for one in rounds
        ]

    begun = together(first)
    write_earlier(lake, [(schemas, events) for events in begun])
    for number, events in enumerate(together(rest), start=len(begun)):
        lake.apply(number, events)
    assert ([], []) == (lake.quarantine(), lake.parked())
    if mode is Mode.MIRROR:
        assert [] == [made.seed for made in histories if not is_right(lake, made)]
        return
    names = {made.seed: f"shop_sales.{made.table}" for made in histories}
    stored = {seed: lake.stored(name).to_pylist() if lake.tables.exists(name) else [] for seed, name in names.items()}
    assert {} == {made.seed: what for made in histories if (what := difference(made, stored[made.seed]))}


def test_columns_across_the_upgrade(lake: Lake, write_earlier: WriteEarlier) -> None:
    """Queries of existing readers, with a filter, and new ones, without it, return the same rows. The sink's columns
    become the last ones when a column is added.
    """
    old, wider, newest = ({"id": "int64", "a": "string"} | dict.fromkeys(more, "string") for more in ("", "b", "bc"))
    begun = [change("c", {"id": id}, {"a": "x"}, pos=id) for id in (1, 2, 3)]
    grown = [
        change("d", {"id": 1}, pos=4),
        change("u", {"id": 2}, {"a": "x", "b": "y"}, pos=5, schema=schema_of(wider)),
    ]
    write_earlier(lake, [([("orders", old)], begun), ([("orders", wider)], grown)])
    names = lake.stored().column_names
    assert (["id", "a", "_cdc_scope"], "b") == (names[:3], names[-1])
    for columns in (old, wider, newest):
        lake.announce(schema_of(columns))
    last = change("u", {"id": 3}, {"a": "z", "b": "z", "c": "z"}, pos=6, schema=schema_of(newest))
    lake.apply(2, [last, change("d", {"id": 2}, pos=7)])
    names = lake.stored().column_names
    assert ["id", "a", "b", "c", "_cdc_scope"] == names[:5]
    assert "_cdc_deleted_at" in names
    orders = lake.stored()
    with duckdb.connect() as connection:
        connection.register("orders", orders)
        for condition in ("", "WHERE _cdc_deleted_at IS NULL"):
            read = connection.execute(f"SELECT id, a, b, c FROM orders {condition}")
            assert [(3, "z", "z", "z")] == read.fetchall()
