"""A message may stop its partition, never the process or another partition."""

import contextlib
import json
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from dev.servers.stack import wait_until
from tests.translator.operations._replay import update
from translator.config import settings as settings_module
from translator.kafka.admin import TopicAdmin
from translator.kafka.topic_reader import TopicReader
from translator.operations.status import Status, StatusLooker

PATIENCE = 180.0
"""Seconds that only a hang exceeds."""


class Service:
    """A raw topic of three partitions, and a service that reads it as a real process."""

    def __init__(self, broker: Broker, folder: Path, port: int, **settings: Any) -> None:
        self.name = f"stopped-{uuid.uuid4().hex[:8]}"
        self.raw = f"{self.name}-raw"
        self.client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        self.log = folder / "log"
        self.config = folder / "translator.yaml"
        self.settings: dict[str, Any] = {
            "group": self.name,
            "kafka": {"bootstrap_servers": broker.bootstrap},
            "output": {"topic": self.name},
            "web": {"port": port},
            "sources": [{"name": "s", "dialect": "canal", "topics": [self.raw], "options": {"profile": "oss"}}],
            **settings,
        }
        self.admin = AdminClient(self.client)
        self.create(self.raw, 3)

    def create(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def feed(self, partition: int, *values: bytes) -> None:
        producer = Producer(self.client)
        for value in values:
            producer.produce(self.raw, value, partition=partition)
        assert 0 == producer.flush(30)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the service, and check that it then ends in an orderly way."""
        self.config.write_text(yaml.safe_dump(self.settings))
        command = [Path(sys.executable).with_name("translator"), "run", "-c", self.config]
        with self.log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
            assert process.poll() is None, self.log.read_text()
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(PATIENCE), self.log.read_text()
        finally:
            process.kill()
            process.wait()

    def committed(self) -> list[int]:
        reader = Consumer(self.client | {"group.id": self.name})
        found = reader.committed([TopicPartition(self.raw, number) for number in range(3)], timeout=30)
        reader.close()
        return [place.offset for place in found]

    def written(self, topic: str) -> Counter[tuple[int, int]]:
        """Return how often the event of each of a raw topic's records was written, by partition and offset."""
        reader = TopicReader(self.client, TopicAdmin(self.client).describe([self.name]))
        origins = [json.loads(record.value())["origin"] for record in reader.to_end()]  # type: ignore[arg-type]
        reader.close()
        return Counter((origin["partition"], origin["offset"]) for origin in origins if origin["topic"] == topic)

    def status(self) -> Status:
        return StatusLooker(settings_module.load(self.config), print).look()


def wait_for(reached: Callable[[], bool]) -> None:
    wait_until("the expected state", PATIENCE, reached)


def rows(first: int, count: int) -> list[bytes]:
    return [update(number, both=False) for number in range(first, first + count)]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_other_partitions_continue(tmp_path: Path, broker: Broker, free_port: int, delivery: str) -> None:
    """Everything before the message is committed and written once, however often the service starts."""
    service = Service(broker, tmp_path, free_port, delivery=delivery, on_error={"MALFORMED_JSON": "stop"})
    service.settings["output"] = {"topic": service.name, "codec": "json"}
    service.feed(0, *rows(0, 20))
    service.feed(1, *rows(20, 21), b"{]", *rows(41, 3))
    service.feed(2, *rows(44, 20))
    for start in range(3):
        with service.running():
            wait_for(lambda: service.committed() == [20, 21, 20 + start])  # noqa: B023  used in this turn only
            wait_for(lambda: "partition stopped" in service.log.read_text())
            service.feed(2, update(90 + start, both=False))
            wait_for(lambda: service.committed() == [20, 21, 21 + start])  # noqa: B023  used in this turn only
            (stopped,) = service.status().stopped
            assert (service.raw, 1, 21, "MALFORMED_JSON") == (
                *(stopped.topic, stopped.partition),
                *(stopped.offset, stopped.code),
            )
    due = {**{(0, n): 1 for n in range(20)}, **{(1, n): 1 for n in range(21)}, **{(2, n): 1 for n in range(23)}}
    assert due == service.written(service.raw)
    service.settings["on_error"] = {}
    with service.running():
        wait_for(lambda: service.committed() == [20, 25, 23])
        assert [] == list(service.status().stopped)
    assert {**due, **{(1, n): 1 for n in (22, 23, 24)}} == service.written(service.raw)


def test_a_contradiction_stops_its_source_only(tmp_path: Path, broker: Broker, free_port: int) -> None:
    """Nothing of the source is written by later starts either, until its options change."""
    service = Service(broker, tmp_path, free_port)
    service.settings["output"] = {"topic": service.name, "codec": "json"}
    other = f"{service.raw}-other"
    service.create(other, 1)
    wrong, right = service.settings["sources"][0], {"name": "o", "dialect": "canal", "options": {"profile": "oss"}}
    service.settings["sources"] = [wrong, right | {"topics": [other]}]
    service.feed(0, *rows(0, 3), update(3), *rows(4, 2))  # both images are complete: not the declared writer
    service.feed(1, *rows(10, 2))
    producer = Producer(service.client)
    for start in range(2):
        with service.running():
            wait_for(lambda: "CONTRADICTION" in service.log.read_text())
            service.feed(2, update(20 + start, both=False))
            producer.produce(other, update(30 + start, both=False))
            assert 0 == producer.flush(30)
            sent = start + 1
            wait_for(lambda: service.written(other)[0, sent - 1] > 0)  # noqa: B023  used in this turn only
            wait_for(lambda: 3 == service.committed()[0])
            assert (0, 3, "CONTRADICTION") in {(s.partition, s.offset, s.code) for s in service.status().stopped}
    assert "source stopped" in service.log.read_text()
    seen = service.written(service.raw)
    assert not {(0, 3), (0, 4), (0, 5), (2, 1)} & {*seen}
    service.settings["sources"][0] = wrong | {"options": {"profile": "ticdc"}}
    with service.running():
        wait_for(lambda: service.committed() == [6, 2, 2])
        assert [] == list(service.status().stopped)
