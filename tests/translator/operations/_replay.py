"""A raw topic, the service's output, and the output of a replay, with real topics and without Faust."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from translator.codecs.record import Record
from translator.config.settings import Settings
from translator.kafka.admin import TopicAdmin
from translator.kafka.topic_reader import TopicReader
from translator.operations.dlq.reader import Dead, LetterFilter, look
from translator.operations.dlq.replay import ReplayReport, replay
from translator.service.bootstrap import prepare
from translator.state.partition_stops import PartitionStop

AMBIGUOUS = {"profile": "auto"}
CLEAR = {"profile": "ticdc"}
"""Its `old` can contain all columns. Canal's cannot, so with `oss` such an update stops the process."""


def update(row: int, *, both: bool = True, name: str = "new", table: str = "t") -> bytes:
    """Return a Canal update. With both images complete, `auto` cannot tell which one is the old row."""
    old = {"id": str(row), "name": "old"} if both else {"name": "old"}
    message = {
        "data": [{"id": str(row), "name": name}],
        "old": [old],
        "database": "shop",
        "table": table,
        "type": "UPDATE",
        "isDdl": False,
        "sql": "",
        "es": 1_700_000_000_000 + 1000 * row,
        "ts": 1_700_000_000_001 + 1000 * row,
        "id": row,
        "mysqlType": {"id": "bigint", "name": "varchar(10)"},
        "pkNames": ["id"],
    }
    return json.dumps(message).encode()


@dataclass
class Read:
    """The fields of a consumer record that the pipeline reads."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]

    @classmethod
    def of(cls, record: Any) -> Read:
        return cls(record.offset(), record.timestamp()[1], record.key(), record.value(), record.headers() or [])


class Yard:
    """A raw topic of three partitions, and the outputs that the configurations need."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.name = f"replay-{uuid.uuid4().hex[:8]}"
        self.raw = f"{self.name}-raw"
        self.said: list[str] = []
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self.make_raw()

    def make_raw(self) -> None:
        self.make(self.raw, 3)

    def make(self, topic: str, partitions: int, max_bytes: int = 1_000_000) -> None:
        """Create a topic with this maximum batch size."""
        new = NewTopic(topic, partitions, 1, config={"max.message.bytes": str(max_bytes)})
        for future in self._admin.create_topics([new]).values():
            future.result(20)

    def allow(self, topic: str, max_bytes: int) -> None:
        """Let a topic accept larger batches."""
        entry = ConfigEntry("max.message.bytes", str(max_bytes), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(20)
        topics = TopicAdmin({"bootstrap.servers": self.bootstrap})
        while topics.max_message_bytes([topic])[topic] != max_bytes:
            time.sleep(0.1)

    def write(self, topic: str, records: Sequence[Record]) -> None:
        """Write records to partition 0 of a topic."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for record in records:
            producer.produce(topic, record.value, record.key, 0, headers=record.headers)
        assert 0 == producer.flush(20)

    def make_raw_again(self) -> None:
        """Recreate the raw topic under the same name."""
        for future in self._admin.delete_topics([self.raw]).values():
            future.result(20)
        while self.raw in self._admin.list_topics(timeout=10).topics:
            time.sleep(0.1)
        self.make_raw()

    def settings(self, options: Mapping[str, Any], dialect: str = "canal", **changes: Any) -> Settings:
        """Return a configuration that writes to `out`, or to the output topic in the changes."""
        document = {
            "kafka": {"bootstrap_servers": self.bootstrap},
            "output": {"topic": f"{self.name}-out"},
            "sources": [{"name": "shop", "dialect": dialect, "topics": [self.raw], "options": dict(options)}],
            "timing": {"metadata_wait": 0, "broker_wait": 20},
        }
        return Settings.model_validate({**document, **changes})

    def feed(self, partition: int, *values: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number, value in enumerate(values):
            key = b"k%d" % number
            producer.produce(self.raw, value, key, partition, timestamp=1_710_000_000_000 + number, headers=[*headers])
        assert 0 == producer.flush(20)

    def translate(self, settings: Settings) -> list[PartitionStop]:
        """Translate the whole raw topic as the service does. Returns where it stopped."""
        return asyncio.run(self._translate(settings))

    async def _translate(self, settings: Settings) -> list[PartitionStop]:
        components = prepare(settings)
        found: dict[int, list[Read]] = defaultdict(list)
        for record in self._all(self.raw):
            found[record.partition()].append(Read.of(record))
        done: list[int] = []
        due = 0
        for partition, records in found.items():
            due += await components.pipeline.process(self.raw, partition, records, lambda: done.append(1))
        while len(done) < due:
            components.delivery.reap()
            await asyncio.sleep(0.005)
        components.reader.close()
        return [*components.pipeline.stopped.values()]

    def replay(self, settings: Settings, wanted: LetterFilter | None = None, *, execute: bool = True) -> ReplayReport:
        return replay(settings, wanted or LetterFilter(), self.said.append, execute=execute)

    def look(self, settings: Settings, wanted: LetterFilter | None = None, *, pending: bool = False) -> Dead:
        return look(settings, wanted or LetterFilter(), self.said.append, pending=pending)

    def raw_records(self, partition: int, begin: int) -> list[Any]:
        """Return the records of a raw partition from an offset on."""
        return [
            record for record in self._all(self.raw) if record.partition() == partition and record.offset() >= begin
        ]

    def read(self, topic: str) -> list[Any]:
        """Return the records of a topic, each partition in order."""
        return self._all(topic)

    def topics(self, prefix: str) -> list[str]:
        """Return the topics with this prefix."""
        return sorted(name for name in self._admin.list_topics(timeout=10).topics if name.startswith(prefix))

    def _all(self, topic: str) -> list[Any]:
        client = {"bootstrap.servers": self.bootstrap}
        reader = TopicReader(client, TopicAdmin(client).describe([topic]))
        records = list(reader.to_end())
        reader.close()
        return records

    def close(self) -> None:
        made = [name for name in self._admin.list_topics(timeout=10).topics if self.name in name]
        for future in self._admin.delete_topics(made).values():
            future.result(20)


def content(record: Any) -> tuple[Any, ...]:
    """Return the bytes and partition of a record, without its offset."""
    return record.partition(), record.key(), record.value(), tuple(record.headers() or ())


def identity(record: Any) -> str:
    return str(dict(record.headers())["cdc-id"].decode())
