"""The product under Prometheus: a broker, a translator, a sink, and messages that cause trouble."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from dev.iceberg.hive_metastore import HiveMetastore
from dev.servers.broker import LOOPBACK, Broker, free_port
from dev.servers.stack import Stack, descendants, is_ready, wait_until
from tests.chaos.alerts.prometheus import Prometheus
from tests.gate import Gate
from tests.translator.operations._replay import AMBIGUOUS, update
from tests.translator.service.test_pipeline import QLIK_ROW

SHOP, ERP, ERP_METADATA = "raw.shop", "raw.erp", "raw.erp.metadata"
PATIENCE = 180.0
_WAITING = 10_000

_SOURCES: tuple[dict[str, Any], ...] = (
    {"name": "shop", "dialect": "canal", "topics": [SHOP], "options": AMBIGUOUS},
    {"name": "erp", "dialect": "qlik", "topics": [ERP, ERP_METADATA], "metadata_topics": [ERP_METADATA]},
)


class Bench:
    """The environment that a drill manipulates."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker = broker
        projections = [{"topic": "cdc.rows", "codec": "upsert"}]
        self.stack = Stack(broker.bootstrap, directory, _SOURCES, max_offsets=1_000, projections=projections)
        self.change(
            "translator",
            on_error={"AMBIGUOUS_VARIANT": "hold_table", "UNKNOWN_OPERATION": "stop"},
            timing={"session": 6, "rebalance": 90, "delivery": 80, "metadata_wait": 300},
        )
        self._sink_port = free_port()
        self.change("sink", metrics={"port": self._sink_port})
        self._create({SHOP: 2, ERP: 2, ERP_METADATA: 1})
        self.prometheus = Prometheus(
            directory / "prometheus", {"translator": self.stack.web_port, "spark-sink": self._sink_port}
        )
        self.metastore = HiveMetastore(directory=directory / "metastore")
        self.gate = Gate(0)  # in front of the metastore, once that has started
        self._aside = self._taken = directory / "aside"
        self._number = 0

    def close(self) -> None:
        self.prometheus.close()
        self.stack.close()
        self.gate.shut()
        self.metastore.close()

    def change(self, program: str, **sections: Any) -> None:
        """Change the configuration of `translator` or `sink`."""
        self.stack.change(program, **sections)

    def change_spark(self, conf: dict[str, str]) -> None:
        """Add Spark settings to those of the sink."""
        settings = yaml.safe_load((self.stack.directory / "sink.yaml").read_text(encoding="utf-8"))
        self.change("sink", spark={"conf": {**settings["spark"]["conf"], **conf}})

    def sources(self) -> list[dict[str, Any]]:
        """Return the configured sources."""
        settings = yaml.safe_load((self.stack.directory / "translator.yaml").read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = settings["sources"]
        return found

    def command(self, program: str, *arguments: str, code: int = 0) -> str:
        """Run a command of a program with its configuration, as on its page, and return its output."""
        module, name = {"translator": ("translator", "translator"), "sink": ("spark_sink", "sink")}[program]
        line = [sys.executable, "-m", module, *arguments, "-c", str(self.stack.directory / f"{name}.yaml")]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def start_metastore(self) -> str:
        """Start a Hive metastore behind the gate and return its address."""
        self.metastore.start()
        self.gate.behind = self.metastore.settled_port()
        self.gate.open()
        return f"thrift://{LOOPBACK}:{self.gate.port}"

    # -- table files

    def files(self, table: str) -> list[str]:
        """Return the data files of a table's newest version, or none if the table does not exist."""
        folder = str(self.stack.warehouse / Path(*table.split(".")))
        return DeltaTable(folder).file_uris() if DeltaTable.is_deltatable(folder) else []

    def delete_rows(self, table: str) -> None:
        """Delete all rows of a table, as another program might do."""
        DeltaTable(str(self.stack.warehouse / Path(*table.split(".")))).delete()

    def put_aside(self, table: str) -> None:
        """Move a data file away, as somebody who cleans up a store manually might do."""
        self._taken = Path(unquote(urlsplit(self.files(table)[0]).path))
        self._taken.rename(self._aside)

    def put_back(self) -> None:
        """Restore the file, as from a backup."""
        self._aside.rename(self._taken)

    # -- messages

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for value in values:
            producer.produce(topic, value, partition=partition)
            producer.poll(0)
        assert 0 == producer.flush(PATIENCE)

    def rows(self, count: int, table: str = "t", **members: Any) -> list[bytes]:
        """Return Canal inserts with the current commit time."""
        self._number += count
        numbers = range(self._number - count, self._number)
        now = int(time.time() * 1000)
        made = [json.loads(update(number, table=table)) for number in numbers]
        return [
            json.dumps({**one, "type": "INSERT", "old": None, "es": now, "ts": now, **members}).encode() for one in made
        ]

    @contextmanager
    def streaming(self, make: Callable[[], list[bytes]], pause: float) -> Iterator[None]:
        """Produce messages without end."""
        ended = threading.Event()

        def feed() -> None:
            producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
            while not ended.wait(pause):
                # During a broker outage, a few thousand are enough.
                for value in make() if len(producer) < _WAITING else ():
                    producer.produce(SHOP, value, partition=1)
                producer.poll(0)
            producer.flush(PATIENCE)

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    # -- processes

    def signal(self, name: str, number: signal.Signals, *, of_children: bool = False) -> None:
        """Send a signal to a program or to its child process, such as the sink's Spark."""
        pid = self.stack.pid(name)
        for target in descendants(pid) if of_children else [pid]:
            os.kill(target, number)

    @contextmanager
    def second_translator(self) -> Iterator[None]:
        """Run another process of the group, which joins and leaves cleanly."""
        settings = yaml.safe_load((self.stack.directory / "translator.yaml").read_text(encoding="utf-8"))
        port = free_port()
        file = self.stack.directory / "second.yaml"
        file.write_text(yaml.safe_dump({**settings, "web": {**settings["web"], "port": port}}), encoding="utf-8")
        line = [sys.executable, "-m", "translator", "run", "-c", str(file)]
        with (self.stack.directory / "second.log").open("ab") as log:
            process = subprocess.Popen(line, stdout=log, stderr=log)
        try:
            wait_until("the second is at work", PATIENCE, lambda: is_ready(port))
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def is_at_work(self) -> bool:
        """Return whether the translator has its partitions."""
        return is_ready(self.stack.web_port)

    def _create(self, topics: dict[str, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
            future.result(PATIENCE)


def unknown_row(schema_id: str) -> bytes:
    """Return a Qlik row that waits for its metadata."""
    return json.dumps({**QLIK_ROW, "messageSchemaId": schema_id}).encode()
