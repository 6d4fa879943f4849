"""A held table over all that may happen to it: a killed owner, a killed replay, and messages that never stop."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.broker import Broker
from dev.stack import Stack, wait_until
from tests.integration._workers import Workers
from tests.translator.runtime._owner import in_order, offsets
from tests.translator.runtime._replay import AMBIGUOUS, CLEAR, update

pytestmark = pytest.mark.integration

SOURCE = {"name": "shop", "dialect": "canal", "topics": ["shop"], "options": AMBIGUOUS}
HOLD = {"AMBIGUOUS_VARIANT": "hold_table"}
MANY = 1_500


def rows(begin: int, end: int) -> Iterator[bytes]:
    for row in range(begin, end):
        yield update(row % 7, both=False)


def replay(stack: Stack) -> subprocess.Popen[bytes]:
    """The command, with a configuration that reads what was dead."""
    config = yaml.safe_load((stack.directory / "translator.yaml").read_text(encoding="utf-8"))
    config["sources"][0]["options"] = CLEAR
    file = stack.directory / "corrected.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with (stack.directory / "replay.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "translator", "dlq", "replay", "-c", file, "--execute"], stdout=log, stderr=log
        )


class Feeding:
    """Messages that go on coming until it is left; how many there are is known then."""

    def __init__(self, feed: Callable[[Iterator[bytes]], None]) -> None:
        self._over = threading.Event()
        self.count = 0
        self._thread = threading.Thread(target=feed, args=(self._rows(),))

    def _rows(self) -> Iterator[bytes]:
        while not self._over.is_set():
            yield from rows(self.count, self.count + 10)
            self.count += 10
            time.sleep(0.05)

    def __enter__(self) -> Feeding:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()


def test_nothing_is_lost_and_nothing_overtaken(tmp_path: Path) -> None:
    """Every event is there, in the order of its row, but for copies; and at last they come straight again."""
    with Broker() as broker:
        workers = Workers(broker, tmp_path, 2, [SOURCE], on_error=HOLD)
        workers.create(shop=2)
        first, second = workers.stacks
        try:
            workers.start()
            for partition in (0, 1):
                workers.feed("shop", [*rows(0, 50), update(1), *rows(0, MANY)], partition)
            for partition in (0, 1):
                workers.wait_committed("shop", 51 + MANY, partition)
            assert 100 == len(workers.events())
            with Feeding(lambda values: workers.feed("shop", values)) as feeding:
                first.kill("translator")
                committed = workers.committed("shop")
                wait_until("the other has it", 60, lambda: workers.committed("shop") > committed + 100, second)
                assert 100 == len(workers.events()), "the next owner holds it, too"
                killed = replay(second)
                wait_until("it is under way", 60, lambda: len(workers.events()) > 500, second)
                killed.kill()
                killed.wait()
                first.start("translator")
                assert 0 == replay(second).wait(120), (second.directory / "replay.log").read_text()
                dead = len(workers.dead_letters())
                workers.feed("shop", rows(0, 20), 1)
                straight = len(workers.events())
                wait_until("they come straight", 60, lambda: len(workers.events()) > straight + 100, second)
            total = 51 + MANY + feeding.count
            workers.wait_committed("shop", total)
            workers.wait_committed("shop", 51 + MANY + 20, 1)
            assert dead == len(workers.dead_letters()), "nothing is held any more"
            events = workers.events()
            assert [*range(total)] == in_order(offsets(events))
            assert [*range(51 + MANY + 20)] == in_order(offsets(events, 1))
        finally:
            workers.close()
