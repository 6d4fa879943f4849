"""Run the sink as a separate process, started as in production."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from pyiceberg.table import StaticTable

from cdc_core.envelope import ChangeEvent, TableSchema
from dev.servers.broker import Broker
from dev.servers.small_spark import SMALL_SPARK
from tests.spark_sink.changes import announced, record
from tests.spark_sink.commit_markers import is_iceberg

# A run to the end of the topic takes about twenty seconds on an idle machine. With a load of eleven per CPU, a test
# with two runs took almost five minutes.
PATIENCE_SECONDS = 600.0


class Sink:
    """The configuration, topics and tables of a sink that runs as a separate process."""

    def __init__(self, broker: Broker, folder: Path, topic: str) -> None:
        self.folder = folder
        self.topic = topic
        self.bootstrap = broker.bootstrap
        # Additional environment variables for the file.
        self.secrets: dict[str, str] = {}
        self.config = folder / "sink.yaml"
        self.warehouse = str(folder / "warehouse")
        self.settings: dict[str, Any] = {
            "pipeline": "test",
            "kafka": {"bootstrap_servers": "${BOOTSTRAP}"},
            "input": {"topic": topic},
            "tables": {"warehouse": self.warehouse},
            "checkpoint": str(folder / "checkpoint"),
            "batches": {"trigger_seconds": 1},
            "spark": {
                "master": "local[1]",
                "memory": "1g",
                "conf": dict(SMALL_SPARK),
            },
        }
        self.write_config()
        compacted = {"cleanup.policy": "compact"}
        topics = [NewTopic(topic, 2, 1), NewTopic(f"{topic}.schemas", 1, 1, config=compacted)]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for created in admin.create_topics(topics).values():
            created.result()

    def write_config(self) -> None:
        self.config.write_text(yaml.safe_dump(self.settings))

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
        return {**os.environ, "BOOTSTRAP": self.bootstrap, **self.secrets}

    def text(self) -> str:
        """Return the output of the last run."""
        return (self.folder / "log").read_text()

    def log(self) -> list[dict[str, Any]]:
        whole, _, _ = self.text().rpartition("\n")  # the rest can be a partial line
        lines = whole.splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"') and '"event"' in line]

    def rows(self, table: str = "shop_sales.orders") -> list[tuple[int, str]]:
        return sorted((row["id"], row["name"]) for row in self.present(table))

    def present(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table of either format, or none if the table does not exist."""
        folder = Path(self.warehouse, *table.split("."))
        try:
            iceberg = is_iceberg(folder)
            found = StaticTable.from_metadata(str(folder)).scan().to_arrow() if iceberg else self._delta(table)
        except TableNotFoundError:
            return []
        return list(found.to_pylist())

    def _delta(self, table: str) -> pa.Table:
        # The query engine also reads tables with deletion vectors.
        found = QueryBuilder().register("stored", self.table(table)).execute("SELECT * FROM stored")
        return pa.RecordBatchReader.from_stream(found).read_all()

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(f"{self.warehouse}/{name.replace('.', '/')}")


def family(pid: int) -> list[int]:
    """Return a process and all its descendants: the sink, its JVM, and the JVM's daemon and workers."""
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
