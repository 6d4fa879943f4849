"""The demo's messages through both images, started as programs on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import yaml

from dev.demo.bad_input import bad_input
from dev.demo.sources import ShopSource, interleaved, shop_sources
from dev.servers.broker import Broker, hold_port
from dev.servers.stack import Stack, is_ready, wait_until

SECONDS = 600  # for each step: a timeout for hanging tests, not a measurement
CHANGES = 120


def test_the_demo(broker: Broker, folder: Path, programs: Mapping[str, Path]) -> None:
    """Five shops in four formats become matching tables, and both images shut down cleanly."""
    sources = shop_sources(2022)
    stack = Stack(broker.bootstrap, folder, [source.settings for source in sources])
    with hold_port() as held:
        pages = {"translator": stack.web_port, "spark-sink": held.getsockname()[1]}
        _as_in_an_image(folder / "sink.yaml", pages["spark-sink"])
        stack.create_raw_topics()
        messages = list(interleaved([source.messages(CHANGES, grow=True) for source in sources]))
        messages += [bad.message for bad in bad_input()]
        stack.feed(messages)
        try:
            for name, port in pages.items():
                started = time.monotonic()
                stack.start(name, program=programs[name])
                wait_until(f"{name} is ready", SECONDS, partial(is_ready, port), stack)
                print(f"{name}: ready in {time.monotonic() - started:.1f} s")
            wait_until("all is accounted for", SECONDS, lambda: _accounted(stack) == len(messages), stack)
            wait_until("the tables are right", SECONDS, lambda: not any(_wrong(stack, sources)), stack)
            for name in pages:
                started = time.monotonic()
                assert 0 == stack.stop(name), stack.log(name).read_text()[-3000:]
                print(f"{name}: ended in {time.monotonic() - started:.1f} s after SIGTERM")
        finally:
            stack.close()


def _as_in_an_image(settings: Path, port: int) -> None:
    """Remove settings that the image provides from the sink's settings, and add those that a chart sets."""
    sink = yaml.safe_load(settings.read_text())
    del sink["spark"]["jars"]
    sink["metrics"] = {"host": "0.0.0.0", "port": port}
    settings.write_text(yaml.safe_dump(sink))


def _accounted(stack: Stack) -> int:
    return sum(counts["in"] for counts in stack.account().values())


def _wrong(stack: Stack, sources: list[ShopSource]) -> Iterator[str]:
    for source in sources:
        yield from source.wrong(stack.rows)
