"""A record that cannot be delivered stops the service, and the next process reads it again."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from dev.demo.sources import shop_sources
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, wait_until
from tests.integration._workers import PATIENCE, Workers, identities

pytestmark = pytest.mark.integration


def test_a_lost_output_topic_stops_it_with_the_offset_where_it_was(empty_broker: Broker, tmp_path: Path) -> None:
    """The service exits with code 1, logs the reason and commits nothing undelivered. The next start resumes there."""
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    workers = Workers(empty_broker, tmp_path, 1, [source.settings], timing={"delivery": 10})
    (stack,) = workers.stacks
    try:
        stack.create_raw_topics()
        stack.feed(source.messages(500, grow=False))
        process = stack.start("translator")
        wait_until("the first messages are committed", PATIENCE, lambda: sum(stack.committed().values()) == 500, stack)
        admin = AdminClient({"bootstrap.servers": empty_broker.bootstrap, "log_level": 0})
        admin.delete_topics([CANONICAL])[CANONICAL].result(20)
        stack.feed(source.messages(500, grow=False))
        assert 1 == process.wait(PATIENCE)
        assert 500 == sum(stack.committed().values())
        assert "delivery failed for a batch of raw.canal" in stack.log("translator").read_text()
        stack.start("translator")
        wait_until("the rest is committed", PATIENCE, lambda: sum(stack.committed().values()) == 1000, stack)
        assert 500 == len(identities(workers.events()))
    finally:
        workers.close()
