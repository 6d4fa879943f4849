"""A raw topic on the real broker, the output that the service would have written, and the commands that read both."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.translator.commands import _program
from tests.translator.service._pipeline import CANAL_ROW
from translator.codecs.record import Record
from translator.config import settings as settings_module
from translator.errors import ErrorCode, RetryableError
from translator.kafka.offset_ranges import Partitions, message_of
from translator.kafka.partitioner import output_partition
from translator.message import Message
from translator.operations.offline_translator import OfflineTranslator
from translator.translation.dead_letter import DeadLetter, dead_letter_record

PARTITIONS, WRITTEN = 2, 3
"""The number of partitions of the raw topic, and of the topics for events and dead letters."""
TIMES = 1_700_000_000_000


def row(number: int, table: str = "t", name: str = "a") -> bytes:
    """Return a Canal message with two rows, and so two events."""
    rows = [{"id": str(number), "name": name}, {"id": str(-number), "name": "b"}]
    return json.dumps({**CANAL_ROW, "data": rows, "table": table}).encode()


class Bench:
    """A source `shop` (Canal) with one raw topic. All of its names on the broker are unique."""

    def __init__(self, bootstrap: str, directory: Path, codec: str = "avro", **changes: Any) -> None:
        self.client: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.name = f"bench-{uuid.uuid4().hex[:8]}"
        self.raw, self.canonical = f"{self.name}-raw", f"{self.name}-out"
        self.dead_letters, self.metadata = f"{self.canonical}.dlq", f"{self.canonical}.metadata"
        self.directory = directory
        self.config = directory / "translator.yaml"
        self.document: dict[str, Any] = {
            "group": self.name,
            "kafka": {"bootstrap_servers": bootstrap},
            "output": {"topic": self.canonical, "codec": codec},
            "sources": [{"name": "shop", "dialect": "canal", "topics": [self.raw], "options": {"profile": "oss"}}],
            **changes,
        }
        self.config.write_text(yaml.safe_dump(self.document))
        self.admin = AdminClient(self.client)
        self._create(
            {
                self.raw: PARTITIONS,
                **dict.fromkeys((self.canonical, self.dead_letters), WRITTEN),
                **dict.fromkeys((self.metadata, f"{self.canonical}.schemas"), 1),
            },
            {},
        )

    def create(self, topic: str, partitions: int, **config: str) -> None:
        self._create({topic: partitions}, {name.replace("_", "."): value for name, value in config.items()})

    def _create(self, partitions: Mapping[str, int], config: dict[str, str]) -> None:
        new = [NewTopic(topic, count, 1, config=config) for topic, count in partitions.items()]
        for future in self.admin.create_topics(new).values():
            future.result(20)
        reader = Partitions(self.client, "unused")
        for topic, count in partitions.items():
            for number in range(count):
                _wait_for(reader, topic, number)
        reader.close()

    def feed(
        self, values: Iterable[bytes | None], partition: int = 0, topic: str = "", headers: Any = (), key: Any = None
    ) -> None:
        producer = Producer(self.client)
        for number, value in enumerate(values):
            producer.produce(
                topic or self.raw, value, key, partition=partition, headers=list(headers), timestamp=TIMES + number
            )
        assert 0 == producer.flush(20)

    def commit(self, offset: int, partition: int = 0) -> None:
        """Commit offsets as the service's group would."""
        reader = Consumer({**self.client, "group.id": self.name})
        reader.commit(offsets=[TopicPartition(self.raw, partition, offset)], asynchronous=False)
        reader.close()

    def serve(self, write: Callable[[Message, list[Record]], Iterable[Record]] | None = None) -> None:
        """Write what the service would write. `write` can omit, repeat or change the records of a message."""
        again = OfflineTranslator(settings_module.load(self.config), print)
        partitions = Partitions(again.client, self.name)
        producer = Producer(self.client)
        for number in range(PARTITIONS):
            for raw in partitions.read(partitions.bounds(self.raw, number)):
                message = message_of(raw, again.facts(self.raw).id)
                translation = again.translate(message)
                topic, records = self.canonical, translation.canonical
                if isinstance(translation.outcome, DeadLetter):
                    topic = self.dead_letters
                    records = [dead_letter_record(message, translation.outcome, "shop", "0", 1_000_000)]
                for record in records if write is None else write(message, records):
                    place = again.partition_in(topic, self.raw, number)
                    producer.produce(topic, record.value, record.key, place, headers=record.headers)
            self.commit(partitions.bounds(self.raw, number).end, number)
        assert 0 == producer.flush(20)
        partitions.close()
        again.close()

    def reject(self, offset: int, code: ErrorCode) -> None:
        """Write a dead letter for a message in the first raw partition."""
        again = OfflineTranslator(settings_module.load(self.config), print)
        message = Message(self.raw, 0, offset, TIMES, None, b"{}", topic_id=again.facts(self.raw).id)
        letter = dead_letter_record(message, DeadLetter(code, "a reason"), "shop", "0", 1_000_000)
        place = again.partition_in(self.dead_letters, self.raw, 0)
        again.close()
        producer = Producer(self.client)
        producer.produce(self.dead_letters, letter.value, letter.key, place, headers=letter.headers)
        assert 0 == producer.flush(20)

    def forget(self, topic: str, count: int) -> None:
        """Delete the first records, which are in one partition, as retention would."""
        (partition,) = {one.partition() for one in self.read(topic)}
        place = TopicPartition(topic, partition, count)
        self.admin.delete_records([place])[place].result(20)

    def repartition(self, topic: str) -> None:
        """Add partitions to a written topic, so that another one is for the first raw partition."""
        before = output_partition(self.raw, 0, WRITTEN)
        count = next(n for n in range(WRITTEN + 1, 100) if output_partition(self.raw, 0, n) != before)
        self.admin.create_partitions([NewPartitions(topic, count)])[topic].result(20)
        reader = Partitions(self.client, "unused")
        for number in range(WRITTEN, count):
            _wait_for(reader, topic, number)
        reader.close()

    def create_raw_again(self) -> None:
        self.admin.delete_topics([self.raw])[self.raw].result(20)
        for _ in range(1000):
            if self.raw not in self.admin.list_topics(timeout=10).topics:
                break
            time.sleep(0.02)
        self._create({self.raw: PARTITIONS}, {})

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return _program.run(*command.split(), "-c", str(self.config), *arguments)

    def read(self, topic: str) -> list[Any]:
        """Return every record of a topic, partition by partition."""
        partitions = Partitions(self.client, "unused")
        count = len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions)
        found = [record for number in range(count) for record in partitions.read(partitions.bounds(topic, number))]
        partitions.close()
        return found

    def close(self) -> None:
        made = [name for name in self.admin.list_topics(timeout=10).topics if self.name in name]
        for future in self.admin.delete_topics(made).values():
            future.result(20)


def _wait_for(reader: Partitions, topic: str, number: int) -> None:
    """Wait for a new topic. At first, brokers do not know it and its partitions have no leaders."""
    for _ in range(1000):
        try:
            reader.bounds(topic, number)
            return
        except RetryableError:
            time.sleep(0.02)
    raise AssertionError(f"{topic}/{number} has no leader")
