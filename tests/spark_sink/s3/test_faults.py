"""The sink on S3 with a failing store or a second sink. In the end, every table is right."""

from __future__ import annotations

import itertools
import signal
import time
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.object_store import BUCKET, ObjectStore
from tests.sizes import count
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.s3.conftest import new_object_store
from tests.spark_sink.s3.lossy_gate import LossyGate
from tests.spark_sink.s3.stored_sink import StoredSink
from tests.spark_sink.sink_process import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.faults]

COLUMNS = {"id": "int64", "name": "string"}
TABLES = ("orders", "items", "merged", "merged_too")
BY_SPARK = {"*.merged*": "spark"}

# Responses to requests that change something: a batch is planned, both engines commit (Spark commits the marker for
# deleted rows separately), the manifest is written, the batch ends.
LOST = (
    rb"PUT [^ ]*/checkpoint/offsets/0 ",
    rb"PUT [^ ]*/orders/_delta_log/0+1\.json",
    rb"PUT [^ ]*/merged/_delta_log/0+1\.json",
    rb"PUT [^ ]*/merged/_delta_log/0+2\.json",
    rb"PUT [^ ]*/_cdc/batches/_delta_log/0+1\.json",
    rb"PUT [^ ]*/checkpoint/commits/0 ",
)


def feed(sink: StoredSink, ids: range) -> list[tuple[int, str]]:
    """Send a row with each id to each table, and return the rows."""
    schemas = [schema_of(COLUMNS, table=table) for table in TABLES]
    events = [
        change("c", {"id": id}, {"name": f"row {id}"}, pos=id, schema=schema, table=schema.table)
        for id in ids
        for schema in schemas
    ]
    sink.send(schemas, events)
    return [(id, f"row {id}") for id in ids]


def wrong(sink: StoredSink, rows: list[tuple[int, str]]) -> list[str]:
    return [table for table in TABLES if rows != sink.rows(f"shop_sales.{table}")]


def test_lost_answers(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """The response to each commit is lost once. All commits count, none is repeated, and no second sink is reported."""
    with LossyGate(object_store.settled_port(), *LOST) as gate:
        gate.open()
        sink = StoredSink(broker, object_store, tmp_path, "sink-s3-lost", port=gate.port)
        sink.settings["tables"]["engines"] = BY_SPARK
        sink.write_config()
        rows = feed(sink, range(1, 5))
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert set(LOST) == gate.requests.keys()
        assert [] == wrong(sink, rows)
        assert [1, 1, 2, 2] == [sink.table(f"shop_sales.{table}").version() for table in TABLES]


def test_the_store_is_away(broker: Broker, tmp_path: Path) -> None:
    """The store is killed during a batch and restarts. The batch continues, or the next start repeats it."""
    with new_object_store() as store:
        sink = StoredSink(broker, store, tmp_path, "sink-s3-away")
        sink.settings["tables"]["engines"] = BY_SPARK
        sink.write_config()
        rows = feed(sink, range(1, 5))
        process = sink.start("--available-now")
        tables = store.directory / "objects" / BUCKET / "sink-s3-away" / "warehouse" / "shop_sales"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not list(tables.glob("*/_delta_log/*1.json")):  # the first table has its commit
            assert process.poll() is None, sink.text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        store.kill()
        time.sleep(min(20, count(0.2)))
        store.start()
        code = process.wait(PATIENCE_SECONDS)
        assert code in (0, 1), sink.text()
        if code == 1:
            assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert [] == wrong(sink, rows)


@pytest.mark.parametrize("begun", [False, True])
def test_two_sinks(broker: Broker, object_store: ObjectStore, tmp_path: Path, begun: bool) -> None:
    """Two sinks of one configuration run until one detects the other, from their first start or from a checkpoint. It
    exits with one line, and every table is right.
    """
    first = StoredSink(broker, object_store, tmp_path, f"sink-s3-two-{begun}")
    first.settings["tables"]["engines"] = BY_SPARK
    first.write_config()
    second = first.beside(tmp_path / "other")
    sinks = [first, second]
    rows = feed(first, range(1, 5))
    if begun:
        assert 0 == first.start("--available-now").wait(PATIENCE_SECONDS), first.text()
    processes = [sink.start() for sink in sinks]
    deadline = time.monotonic() + PATIENCE_SECONDS
    for id in itertools.count(5):
        if any(process.poll() is not None for process in processes):
            break
        assert time.monotonic() < deadline, "neither has noticed the other"
        rows += feed(first, range(id, id + 1))
        time.sleep(0.5)
    lost = [number for number, process in enumerate(processes) if process.poll() is not None]
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
    for number in lost:
        assert 1 == processes[number].returncode
        said = sinks[number].text()
        assert said.strip().splitlines()[-1].startswith("spark-sink: another sink or program wrote the "), said
        assert 1 == said.count("another sink or program"), said
        assert "Traceback" not in said
    assert 0 == first.start("--available-now").wait(PATIENCE_SECONDS), first.text()
    assert [] == wrong(first, rows)
