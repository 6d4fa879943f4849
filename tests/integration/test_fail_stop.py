"""A record that cannot be delivered stops the service; what it had read is still there for the next one."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from dev.broker import Broker
from dev.sources import shop_sources
from dev.stack import CANONICAL, Stack, wait_until

pytestmark = pytest.mark.integration


def test_a_lost_output_topic_stops_it_with_the_offset_where_it_was(tmp_path: Path) -> None:
    """Exit code 1, the reason in the log, nothing committed that was not delivered; the next start goes on."""
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    # A broker of its own: this test deletes a topic that others use.
    with Broker() as broker:
        stack = Stack(broker.bootstrap, tmp_path, [source.settings])
        try:
            stack.create_raw_topics()
            stack.feed(source.messages(500, grow=False))
            process = stack.start("translator")
            wait_until("the first messages are committed", 60, lambda: sum(stack.committed().values()) == 500, stack)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
            admin.delete_topics([CANONICAL])[CANONICAL].result(20)
            stack.feed(source.messages(500, grow=False))
            assert 1 == process.wait(60)
            assert 500 == sum(stack.committed().values())
            assert "delivery failed for a batch of raw.canal" in stack.log("translator").read_text()
            stack.start("translator")
            wait_until("the rest is committed", 60, lambda: sum(stack.committed().values()) == 1000, stack)
            assert 500 == len(stack.records(CANONICAL))
        finally:
            stack.close()
