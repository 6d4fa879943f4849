"""A wrongly declared DTS instance stops its source. After the correction, the source resumes."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dev.demo.sources import shop_sources
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, Stack, wait_until
from tests.integration._workers import PATIENCE
from translator.codecs.avro import AvroCodec

pytestmark = pytest.mark.integration


def offsets(stack: Stack) -> Mapping[int, list[int]]:
    """Return the raw offsets of the canonical events, by raw partition."""
    found: dict[int, list[int]] = defaultdict(list)
    codec = AvroCodec()
    for record in stack.records(CANONICAL):
        origin = codec.decode(record.value()).origin
        found[origin.partition].append(origin.offset)
    return found


def log(stack: Stack) -> str:
    return stack.log("translator").read_text()


def test_it_stops_before_the_contrary_row_and_goes_on_when_corrected(empty_broker: Broker, tmp_path: Path) -> None:
    """The service logs the reason. It writes and commits nothing from that message on."""
    (source,) = [source for source in shop_sources(1) if source.name == "legacy"]
    wrong: dict[str, Any] = {**source.settings, "options": {"profile": "dts"}}
    stack = Stack(empty_broker.bootstrap, tmp_path / "wrong", [wrong])
    corrected = Stack(empty_broker.bootstrap, tmp_path / "corrected", [source.settings])
    try:
        stack.create_raw_topics()
        fed = stack.feed(source.messages(500, grow=False))
        stack.start("translator")
        wait_until("a partition is stopped", PATIENCE, lambda: "partition stopped" in log(stack), stack)
        stack.stop("translator")
        # Either a change that contradicts another one, or a message that proves the other form, whichever comes first.
        said = re.search(r"partition (\d+)(?:: the change at|,) offset (\d+) ", log(stack))
        assert said is not None
        partition, contrary = int(said[1]), int(said[2])
        assert all(offset < contrary for offset in offsets(stack)[partition])
        assert stack.committed()["raw.legacy", partition] <= contrary
        written = offsets(stack)
        stops = log(stack).count("partition stopped")
        stack.start("translator")
        wait_until("it has stopped again", PATIENCE, lambda: log(stack).count("partition stopped") > stops, stack)
        stack.stop("translator")
        assert "source stopped" in log(stack)
        assert written == offsets(stack), "a restart alone writes nothing more"
        corrected.start("translator")
        total = {place: counts["in"] for place, counts in fed.items()}
        wait_until("the rest is committed", PATIENCE, lambda: corrected.committed() == total, corrected)
        assert set(range(total["raw.legacy", partition])) == set(offsets(corrected)[partition])
    finally:
        stack.close()
        corrected.close()
