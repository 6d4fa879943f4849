"""A held table survives a killed owner, a killed replay and an endless stream of messages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dev.servers.broker import Broker
from dev.servers.stack import Stack, wait_until
from tests.integration._workers import PATIENCE, Feeding, Workers, identities
from tests.translator.operations._owner import in_order, offsets
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, update

pytestmark = [pytest.mark.integration, pytest.mark.faults]

SOURCE = {"name": "shop", "dialect": "canal", "topics": ["shop"], "options": AMBIGUOUS}
HOLD = {"AMBIGUOUS_VARIANT": "hold_table"}
MANY = 1_500


def rows(begin: int, end: int) -> Iterator[bytes]:
    for row in range(begin, end):
        yield update(row % 7, both=False)


def replay(stack: Stack) -> subprocess.Popen[bytes]:
    """Run the command with a configuration that can read the dead letters."""
    config = yaml.safe_load((stack.directory / "translator.yaml").read_text(encoding="utf-8"))
    config["sources"][0]["options"] = CLEAR
    file = stack.directory / "corrected.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with (stack.directory / "replay.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "translator", "dlq", "replay", "-c", file, "--execute"], stdout=log, stderr=log
        )


def test_nothing_is_lost_and_nothing_overtaken(empty_broker: Broker, tmp_path: Path) -> None:
    """Every event is written in row order, apart from duplicates, and in the end the table is released."""
    workers = Workers(empty_broker, tmp_path, 2, [SOURCE], on_error=HOLD)
    workers.create(shop=2)
    first, second = workers.stacks
    try:
        workers.start()
        for partition in (0, 1):
            workers.feed("shop", [*rows(0, 50), update(1), *rows(0, MANY)], partition)
        for partition in (0, 1):
            workers.wait_committed("shop", 51 + MANY, partition)
        assert 100 == len(identities(workers.events()))
        with Feeding(lambda values: workers.feed("shop", values), rows) as feeding:
            first.kill("translator")
            committed = workers.committed("shop")
            wait_until("the other has it", PATIENCE, lambda: workers.committed("shop") > committed + 100, second)
            assert 100 == len(identities(workers.events())), "the next owner holds it, too"
            killed = replay(second)
            wait_until("it is under way", PATIENCE, lambda: len(identities(workers.events())) > 500, second)
            killed.kill()
            killed.wait()
            first.start("translator")
            workers.wait_up(0)
            # A replay gets no answer from an owner whose partitions move, and exits. The next one releases the table.
            for _ in range(5):
                assert 0 == replay(second).wait(2 * PATIENCE), (second.directory / "replay.log").read_text()
                dead, straight = len(workers.dead_letters()), len(workers.events())
                wait_until(
                    "they come straight, or are held",
                    PATIENCE,
                    lambda dead=dead, straight=straight: (
                        len(workers.events()) > straight + 100 or len(workers.dead_letters()) > dead
                    ),
                    second,
                )
                if len(workers.dead_letters()) == dead:
                    break
            workers.feed("shop", rows(0, 20), 1)
        total = 51 + MANY + feeding.count
        workers.wait_committed("shop", total)
        workers.wait_committed("shop", 51 + MANY + 20, 1)
        assert dead == len(workers.dead_letters()), "nothing is held any more"
        events = workers.events()
        assert [*range(total)] == in_order(offsets(events))
        assert [*range(51 + MANY + 20)] == in_order(offsets(events, 1))
    finally:
        workers.close()
