"""After an error, the process leaves the group immediately, unless records are in flight."""

import asyncio
import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker
from translator.codecs.record import Record
from translator.errors import FatalError
from translator.service import stopping
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metrics import BatchAccount

# The service with a hard exit too late to matter.
SERVICE = """
import sys
from translator.commands import main
from translator.service import stopping

stopping._FATAL_EXIT_SECONDS = 3600
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""
PATIENCE_SECONDS = 180  # a start and an end take four on an idle machine


class Group:
    """A service with its own group and topics, run once until it ends. Its session is longer than any test."""

    def __init__(self, broker: Broker, folder: Path, port: int, value: bytes) -> None:
        self.name = f"stopping-{uuid.uuid4().hex[:8]}"
        self.place = TopicPartition(f"{self.name}-raw", 0)
        self.client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        self.admin = AdminClient(self.client)
        self.settings: dict[str, Any] = {
            "group": self.name,
            "kafka": {"bootstrap_servers": broker.bootstrap},
            "output": {"topic": self.name},
            "timing": {"session": 300},
            "web": {"port": port},
            "sources": [{"name": "s", "dialect": "canal", "topics": [self.place.topic], "options": {"profile": "oss"}}],
        }
        self._folder = folder
        self.create(NewTopic(self.place.topic, 1, 1))
        producer = Producer(self.client)
        producer.produce(self.place.topic, value)
        assert 0 == producer.flush(30)

    def create(self, topic: NewTopic) -> None:
        self.admin.create_topics([topic])[topic.topic].result(30)

    def run(self) -> str:
        """Return its log after it has ended with an error."""
        config, log = self._folder / "translator.yaml", self._folder / "log"
        config.write_text(yaml.safe_dump(self.settings))
        command = [sys.executable, "-c", SERVICE, config]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            assert 1 == process.wait(PATIENCE_SECONDS)
            return log.read_text()
        finally:
            process.kill()
            process.wait()

    @property
    def members(self) -> int:
        (found,) = self.admin.describe_consumer_groups([self.name]).values()
        return len(found.result(30).members)


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_it_leaves_the_group(tmp_path: Path, broker: Broker, free_port: int, delivery: str) -> None:
    """If a partition cannot be placed, the exit code is 1 with the reason, and the group has no members right after."""
    group = Group(broker, tmp_path, free_port, b"{]")
    group.settings |= {"delivery": delivery}
    reader = Consumer(group.client | {"group.id": group.name, "enable.auto.commit": False})
    try:
        reader.commit(offsets=[TopicPartition(group.place.topic, 0, 5)], asynchronous=False)
        lines = group.run().splitlines()
        last = [found for line in lines if (found := json.loads(line))["level"] == "critical"][-1]
        assert ("stopping", True) == (last["event"], "the topic ends before the committed offset" in last["error"])
        assert 0 == group.members
        (left,) = reader.committed([group.place], timeout=30)
        assert 5 == left.offset
    finally:
        reader.close()


class App:
    """The part of the app that receives an error. The test above covers leaving the group."""

    def __init__(self) -> None:
        self.ending = False
        self.crashed: list[BaseException] = []
        self.watchdog = self
        self.turn = asyncio.Event()

    def retire(self, seconds: float) -> None:
        assert seconds > 0

    async def crash(self, error: BaseException) -> None:
        self.crashed.append(error)
        self.turn.set()


@pytest.mark.parametrize("under_way", [True, False])
def test_it_does_not_leave_with_records_under_way(monkeypatch: pytest.MonkeyPatch, under_way: bool) -> None:
    """These records could be stored after the next owner's output, so the membership is kept."""
    hard: list[float] = []
    monkeypatch.setattr(stopping, "exit_within", hard.append)

    async def scenario() -> list[BaseException]:
        app, delivery = App(), InMemoryDelivery(lambda account: None)
        if under_way:
            delivery.withhold("out")
        batch = delivery.begin(BatchAccount("s", "raw", 0, records=1), lambda: None)
        await batch.send("out", 0, [Record(b"key", b"value", [])])
        stopping.FailStop(app, delivery).stop_work(FatalError("an error"))  # type: ignore[arg-type]
        if not under_way:
            await app.turn.wait()
        await asyncio.sleep(0)
        assert app.ending
        return app.crashed

    assert [type(error) for error in asyncio.run(scenario())] == ([] if under_way else [FatalError])
    assert len(hard) == 1
