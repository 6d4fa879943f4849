"""After an error the process ends in order: it leaves the group, and nobody has to wait for its session."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dev.broker import Broker

# The service whose hard exit comes too late to help.
SERVICE = """
import sys
from translator.commands import main
from translator.service import stopping

stopping._FATAL_EXIT_SECONDS = 3600
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""
PATIENCE_SECONDS = 180  # a start and an end take four on a quiet machine


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
    name = f"stopping-{uuid.uuid4().hex[:8]}"
    client = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    admin = AdminClient(client)
    admin.create_topics([NewTopic(f"{name}-raw", 1, 1)])[f"{name}-raw"].result(30)
    producer = Producer(client)
    producer.produce(f"{name}-raw", b"{]")
    assert 0 == producer.flush(30)
    place = TopicPartition(f"{name}-raw", 0)
    reader = Consumer(client | {"group.id": name, "enable.auto.commit": False})
    if committed is not None:
        reader.commit(offsets=[TopicPartition(place.topic, 0, committed)], asynchronous=False)
    settings = {
        "group": name,
        "kafka": {"bootstrap_servers": broker.bootstrap},
        "output": {"topic": name},
        "delivery": delivery,
        "timing": {"session": 300},  # longer than we wait: only who leaves is gone
        "on_error": {"MALFORMED_JSON": "stop"},
        "web": {"port": free_port},
        "sources": [{"name": "s", "dialect": "canal", "topics": [place.topic], "options": {"profile": "oss"}}],
    }
    config = tmp_path / "translator.yaml"
    config.write_text(yaml.safe_dump(settings))
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", SERVICE, config], stdout=output, stderr=subprocess.STDOUT)
    try:
        assert 1 == process.wait(PATIENCE_SECONDS)
        lines = log.read_text().splitlines()
        last = [found for line in lines if (found := json.loads(line))["level"] == "critical"][-1]
        assert ("stopping", True) == (last["event"], said in last["error"])
        (found,) = admin.describe_consumer_groups([name]).values()
        assert [] == found.result(30).members
        (left,) = reader.committed([place], timeout=30)
        assert left.offset == (0 if committed is None else committed)
    finally:
        process.kill()
        process.wait()
        reader.close()
