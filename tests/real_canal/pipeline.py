"""Run the workload on a database, and follow it through Canal, two translators and two sinks."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from dev.servers.broker import LOOPBACK, Broker
from dev.servers.canal import TIME_ZONE, CanalServer, CanalTopics
from dev.servers.mariadb import MariaDb
from dev.servers.stack import CANONICAL, Stack, wait_until

WORKLOAD = Path(__file__).with_name("workload")

PARTITIONS = 4
DEFAULT, HASHED = "real", "real_hashed"

PATIENCE = 600.0
"""Timeout in seconds that only a hang exceeds."""

STEADY = {"session": 30}
"""Timing for translators that nobody kills. With a shorter session, a busy machine could write events twice."""

SOURCE: dict[str, Any] = {
    "name": "shop",
    "dialect": "canal",
    "topics": [DEFAULT, HASHED],
    "options": {"profile": "oss", "timezone": TIME_ZONE},
    "tables": [{"table": "keyed.uniques", "key": ["n"]}],
}


TIERS: dict[str, dict[str, str]] = {"native": {}, "plain": {"*": "iceberg"}}
"""Table formats by the translator's path. Tables without an entry are Delta tables."""


@dataclass(frozen=True)
class Tier:
    """A translator on one path with its own canonical topic, and a sink with one table format."""

    name: str
    stack: Stack
    topic: str

    def records(self) -> list[tuple[Any, bytes, Any]]:
        """Return the key, value and headers of each record in the canonical topic."""
        found = self.stack.records(self.topic)
        return [(record.key(), record.value(), tuple(record.headers())) for record in found]

    def wait_for_outcomes(self, total: int) -> Counter[str]:
        """Return the number of raw records per counter, once each of `total` records has an outcome."""
        wait_until(f"{self.name}: {total} outcomes", PATIENCE, lambda: self._settled() >= total, self.stack)
        return self._counts()

    def _settled(self) -> int:
        counts = self._counts()
        return sum(counts[outcome] for outcome in ("translated", "dead", "skipped", "learned"))

    def _counts(self) -> Counter[str]:
        return sum(self.stack.account().values(), Counter())

    def taken(self) -> int:
        """Return the number of raw records that the running translator translated on the native path."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.stack.web_port}/metrics", timeout=PATIENCE) as answer:
            found = text_string_to_metric_families(answer.read().decode())
        samples = [sample for family in found if family.name == "cdc_native_messages" for sample in family.samples]
        return sum(int(sample.value) for sample in samples if sample.labels.get("outcome") == "taken")


class Pipeline:
    """The running servers. Both tiers read what one Canal writes."""

    def __init__(self, broker: Broker, database: MariaDb, directory: Path) -> None:
        self.database = database
        self.bootstrap = broker.bootstrap
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1) for name in SOURCE["topics"]]
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE)
        database.run("CREATE DATABASE marks; CREATE TABLE marks.ends (id INT PRIMARY KEY);")
        topics_of_canal = CanalTopics(DEFAULT, rf"{HASHED}:hashed\..*", r"hashed\..*:$pk$", PARTITIONS)
        self.canal = CanalServer(database, broker.bootstrap, topics_of_canal, database.position())
        self.tiers = [self._tier(directory, name, formats) for name, formats in TIERS.items()]
        self._marks = 0
        self._reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
        self._reader.assign([TopicPartition(DEFAULT, 0, OFFSET_BEGINNING)])

    def _tier(self, directory: Path, name: str, formats: dict[str, str]) -> Tier:
        stack = Stack(self.bootstrap, directory / name, [SOURCE])
        topic = f"{CANONICAL}.{name}"
        native = "auto" if name == "native" else "off"
        stack.change("translator", group=name, native=native, output={"topic": topic}, timing=STEADY)
        stack.change("sink", pipeline=name, input={"topic": topic}, tables={"formats": formats})
        return Tier(name, stack, topic)

    def execute(self, group: int) -> None:
        """Execute a group of the workload, and wait until Canal has sent everything."""
        for file in sorted(WORKLOAD.glob(f"{group}_*.sql")):
            self.database.run(file.read_text(encoding="utf-8"))
        self._marks += 1
        self.database.run(f"INSERT INTO marks.ends VALUES ({self._marks})")
        self.wait_for_mark()

    def wait_for_mark(self) -> None:
        """Read on in the default topic until the newest mark. Canal sends it after everything that came before it."""
        text = f'"data":[{{"id":"{self._marks}"}}],"database":"marks"'.encode()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for record in self._reader.consume(1000, 0.1):
                if text in (record.value() or b""):
                    return
        raise AssertionError(f"mark {self._marks} did not arrive")

    def _raw_records(self) -> int:
        """Return the number of records in the raw topics."""
        places = [TopicPartition(topic, number) for topic in SOURCE["topics"] for number in range(PARTITIONS)]
        return sum(self._reader.get_watermark_offsets(place, PATIENCE)[1] for place in places)

    def start_translators(self) -> None:
        for tier in self.tiers:
            tier.stack.start("translator")

    def count_outcomes(self) -> dict[str, Counter[str]]:
        """Wait until both translators have an outcome for every raw record, and return their counts."""
        total = self._raw_records()
        return {tier.name: tier.wait_for_outcomes(total) for tier in self.tiers}

    def stop_translators(self) -> None:
        for tier in self.tiers:
            assert 0 == tier.stack.stop("translator")

    def raw(self, topic: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the messages of a raw topic, with their partitions."""
        return [(record.partition(), json.loads(record.value())) for record in self.tiers[0].stack.records(topic)]

    def write_tables(self) -> None:
        """Let both sinks apply everything, side by side."""
        for tier in self.tiers:
            tier.stack.start("spark-sink", "--available-now")
        for tier in self.tiers:
            assert 0 == tier.stack.wait("spark-sink", PATIENCE), tier.stack.log("spark-sink")

    def close(self) -> None:
        self._reader.close()
        for tier in self.tiers:
            tier.stack.close()
