"""The whole sink, as it is started in production, against the real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from cdc_core.envelope import ChangeEvent, TableSchema
from dev.broker import Broker
from dev.small_spark import SMALL_SPARK
from tests.spark_sink.changes import announced, change, record, schema_of

# A run to the end of the topic takes some twenty on a quiet machine; with a load of eleven per processor, a
# test with two runs took almost five minutes.
PATIENCE_SECONDS = 600.0


class Sink:
    """A sink's configuration, topics and tables; it runs as a process of its own."""

    def __init__(self, broker: Broker, folder: Path, topic: str) -> None:
        self.folder = folder
        self.topic = topic
        self.bootstrap = broker.bootstrap
        self.config = folder / "sink.yaml"
        settings = {
            "pipeline": "test",
            "kafka": {"bootstrap_servers": "${BOOTSTRAP}"},
            "input": {"topic": topic},
            "tables": {"warehouse": str(folder / "warehouse")},
            "checkpoint": str(folder / "checkpoint"),
            "batches": {"trigger_seconds": 1},
            "spark": {
                "master": "local[2]",
                "memory": "1g",
                "conf": dict(SMALL_SPARK),
            },
        }
        self.config.write_text(yaml.safe_dump(settings))
        compacted = {"cleanup.policy": "compact"}
        topics = [NewTopic(topic, 2, 1), NewTopic(f"{topic}.schemas", 1, 1, config=compacted)]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics(topics).values():
            created.result()

    def send(self, schemas: list[TableSchema], events: list[ChangeEvent]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for schema in schemas:
            producer.produce(f"{self.topic}.schemas", announced(schema), schema.topic_key)
        assert 0 == producer.flush(PATIENCE_SECONDS)
        for event in events:
            producer.produce(self.topic, record(event), partition=0)
        assert 0 == producer.flush(PATIENCE_SECONDS)

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "spark_sink", "run", "-c", str(self.config), *options]
        log = (self.folder / "log").open("w")
        with log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True, env=self.environment())

    def environment(self) -> dict[str, str]:
        return {**os.environ, "BOOTSTRAP": self.bootstrap}

    def log(self) -> list[dict[str, Any]]:
        whole, _, _ = (self.folder / "log").read_text().rpartition("\n")  # the rest may be half a line
        lines = whole.splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"') and '"event"' in line]

    def rows(self, table: str = "shop_sales.orders") -> list[tuple[int, str]]:
        try:
            found = DeltaTable(str(self.folder.joinpath("warehouse", *table.split(".")))).to_pyarrow_table()
        except TableNotFoundError:
            return []
        return sorted((row["id"], row["name"]) for row in found.to_pylist() if row["_cdc_deleted_at"] is None)


def family(pid: int) -> list[int]:
    """A process and all that descend from it: the sink, its JVM, and the daemon and workers of that."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict(map(int, line.split()) for line in listed.splitlines())
    found = [pid]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found


def wait(until: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until():
        assert process.poll() is None, "the sink ended"
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.2)


@pytest.mark.integration
def test_from_topic_to_table(broker: Broker, tmp_path: Path) -> None:
    """Events of the topic are in the table; a start that replays a batch skips it, survives Spark's fault and goes on.
    SIGTERM to all processes of the service, as systemd sends it, lets the running batch end: exit code 0."""
    sink = Sink(broker, tmp_path, "sink-to-table")
    schema = schema_of({"id": "int64", "name": "string"})
    sink.send([schema], [change("c", {"id": n}, {"name": f"row {n}"}, pos=n, schema=schema) for n in range(20)])
    bounded = sink.start("--available-now")
    assert 0 == bounded.wait(PATIENCE_SECONDS), (tmp_path / "log").read_text()[-3000:]
    assert [(n, f"row {n}") for n in range(20)] == sink.rows()
    assert ["table created"] == [line["event"] for line in sink.log() if line["event"] == "table created"]

    # What a crash between the last commit of a table and the acknowledgement of the batch leaves.
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
    sink.send([], [change("u", {"id": 3}, {"name": "patched"}, pos=30, full=False, schema=schema)])
    service = sink.start()
    try:
        wait(lambda: 1 in {line.get("batch") for line in sink.log() if line["event"] == "batch applied"}, service)
        assert (3, "patched") in sink.rows()
        wider = schema_of({"id": "int64", "name": "string", "more": "string"})
        sink.send([wider], [change("c", {"id": 20}, {"name": "row 20", "more": "x"}, pos=31, schema=wider)])
        wait(lambda: "columns added" in {line["event"] for line in sink.log()}, service)  # in the middle of a batch
        for pid in family(service.pid):
            os.kill(pid, signal.SIGTERM)
        assert 0 == service.wait(PATIENCE_SECONDS), (tmp_path / "log").read_text()[-3000:]
    finally:
        service.kill()
    assert (21, (20, "row 20")) == (len(sink.rows()), sink.rows()[-1])
    assert "Traceback" not in (tmp_path / "log").read_text()
    assert "stopped" == sink.log()[-1]["event"]
    batches = {line["batch"]: line for line in sink.log() if line["event"] == "batch applied"}
    # A broker that does not answer within two seconds leaves a lag unknown.
    unknown = [line["batch"] for line in sink.log() if "cannot read where the topic" in line.get("reason", "")]
    assert {0: 1, 1: 0, 2: 0} | dict.fromkeys(unknown) == {batch: line["lag"] for batch, line in batches.items()}
    assert (1, 0) == (batches[0]["commits_skipped"], batches[0]["commits"])
    assert 1 == sum(line["event"] == "query restarted" for line in sink.log())

    # What the configuration asks of a table that cannot be: known from the manifest, before the query starts.
    def refused(**changed: object) -> str:
        settings = yaml.safe_load(sink.config.read_text()) | changed
        settings["tables"] |= {"modes": {"shop_sales.orders": "history"}}
        sink.config.write_text(yaml.safe_dump(settings))
        assert 2 == sink.start().wait(PATIENCE_SECONDS)
        text = (tmp_path / "log").read_text()
        assert not [
            line for line in text.splitlines() if "Exception" in line or line.startswith(("\tat ", "Traceback"))
        ]
        assert "the table shop_sales.orders was created as mirror, and tables.modes makes it history" in text
        return text

    assert "engine chosen" not in refused()
    # Another pipeline's manifest does not know it: it is told in the first batch, and no stack trace stands before it.
    refused(pipeline="other", checkpoint=str(tmp_path / "other"))


def test_a_mistake_in_the_file_is_exit_code_2(tmp_path: Path) -> None:
    """A configuration that cannot be used ends with one message and exit code 2, before Spark starts."""
    config = tmp_path / "sink.yaml"
    config.write_text("pipelin: x")
    command = [sys.executable, "-m", "spark_sink", "run", "-c", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert 2 == ended.returncode
    assert "unknown setting 'pipelin' (did you mean pipeline?)" in ended.stderr
    assert "Traceback" not in ended.stderr
