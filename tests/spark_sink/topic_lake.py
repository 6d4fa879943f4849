"""A lake whose batches come from a real topic, for commands that read the topic."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_core.envelope import ChangeEvent
from dev.servers.broker import Broker
from spark_sink.commands import main
from tests.spark_sink.changes import record
from tests.spark_sink.lake import Lake


class TopicLake(Lake):
    """A lake whose batches come from a real topic."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.topic_name = f"verified-{folder.name}"
        super().__init__(folder / "warehouse")
        self._client = {"bootstrap.servers": broker.bootstrap}
        topics = [NewTopic(name, 1, 1) for name in (self.topic_name, f"{self.topic_name}.schemas")]
        admin = AdminClient(self._client)
        for created in admin.create_topics(topics).values():
            created.result()
        self.config = folder / "sink.yaml"
        self.settings: dict[str, Any] = {
            "pipeline": "test",
            "kafka": {"bootstrap_servers": broker.bootstrap},
            "input": {"topic": self.topic_name},
            "tables": {"warehouse": str(self.warehouse)},
            "checkpoint": str(folder / "checkpoint"),
        }
        self._sent = 0

    def receive(self, batch: int, events: list[ChangeEvent | bytes]) -> None:
        """Write the events to the topic, and apply them as a batch."""
        self.send(events)
        self.apply_sent(batch, events)

    def send(self, events: list[ChangeEvent | bytes]) -> None:
        """Write the events to the topic."""
        producer = Producer(self._client)
        for event in events:
            producer.produce(self.topic_name, event if isinstance(event, bytes) else record(event))
        assert producer.flush(60) == 0

    def apply_sent(self, batch: int, events: list[ChangeEvent | bytes]) -> None:
        """Apply events that were written to the topic."""
        self.applier(self.records(events, self._sent), batch)
        self._sent += len(events)

    def verify(self, *options: str) -> tuple[int, str]:
        """Return the exit code and the output of the command."""
        return self.run("verify", "shop_sales.orders", *options)

    def run(self, *command: str) -> tuple[int, str]:
        self.config.write_text(yaml.safe_dump(self.settings))
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told), pytest.raises(SystemExit) as end:
            main([*command, "-c", str(self.config)])
        assert isinstance(end.value.code, int)
        return end.value.code, told.getvalue()
