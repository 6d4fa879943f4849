"""After an error the process leaves the group at once, but not with records under way."""

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

from dev.broker import Broker
from tests.translator.service._pipeline import CANAL_ROW

# The service with another time until its hard exit.
SERVICE = """
import sys
from translator.commands import main
from translator.service import stopping

stopping._FATAL_EXIT_SECONDS = int(sys.argv[2])
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""
PATIENCE_SECONDS = 180  # a start and an end take four on a quiet machine
NEVER = 3600


class Group:
    """A service of its own group and topics, to be run once until it ends; its session is longer than any test."""

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

    def run(self, exit_seconds: int) -> str:
        """The text of its log, once it has ended after an error."""
        config, log = self._folder / "translator.yaml", self._folder / "log"
        config.write_text(yaml.safe_dump(self.settings))
        command = [sys.executable, "-c", SERVICE, config, str(exit_seconds)]
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


@pytest.mark.parametrize(
    ("committed", "said"),
    [(None, "MALFORMED_JSON"), (5, "the topic ends before the committed offset")],
    ids=["a message that stops it", "a partition that cannot be placed"],
)
@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_it_leaves_the_group(
    tmp_path: Path, broker: Broker, free_port: int, committed: int | None, said: str, delivery: str
) -> None:
    """Exit code 1 with the reason, nothing committed, and a group without members as soon as it has ended."""
    group = Group(broker, tmp_path, free_port, b"{]")
    group.settings |= {"delivery": delivery, "on_error": {"MALFORMED_JSON": "stop"}}
    reader = Consumer(group.client | {"group.id": group.name, "enable.auto.commit": False})
    try:
        if committed is not None:
            place = TopicPartition(group.place.topic, 0, committed)
            reader.commit(offsets=[place], asynchronous=False)
        lines = group.run(NEVER).splitlines()
        last = [found for line in lines if (found := json.loads(line))["level"] == "critical"][-1]
        assert ("stopping", True) == (last["event"], said in last["error"])
        assert 0 == group.members
        (left,) = reader.committed([group.place], timeout=30)
        assert left.offset == (0 if committed is None else committed)
    finally:
        reader.close()


def test_it_does_not_leave_with_records_under_way(tmp_path: Path, broker: Broker, free_port: int) -> None:
    """They might be stored behind what the next owner of the partition writes, so its place in the group is kept."""
    group = Group(broker, tmp_path, free_port, json.dumps(CANAL_ROW).encode())
    # A record for this topic is never acknowledged: it wants two replicas, and there is one.
    group.create(NewTopic(group.name, 4, 1, config={"min.insync.replicas": "2"}))
    group.settings["timing"] |= {"delivery": 10, "rebalance": 20}
    assert "delivery failed for a batch" in group.run(exit_seconds=1)
    assert 1 == group.members
