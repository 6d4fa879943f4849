"""With `group_instance_id`, a process that restarts under its name causes no rebalance."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
import yaml

from dev.servers.broker import LOOPBACK, Broker
from dev.servers.stack import Stack, wait_until
from tests.integration._workers import PATIENCE, Workers, is_ready
from tests.translator.operations._replay import CLEAR, update

pytestmark = pytest.mark.integration

SOURCE = {"name": "shop", "dialect": "canal", "topics": ["shop"], "options": CLEAR}


def figure(stack: Stack, name: str) -> float:
    """Return a metric without labels, or -1 if the process does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.web_port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return -1
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def owns_one(stack: Stack) -> bool:
    """Return whether the process owns one partition. A readiness request updates the figure."""
    return is_ready(stack) and figure(stack, "cdc_partitions_assigned") == 1


def rebalances(stack: Stack) -> float:
    """Return how often the process revoked its partitions. On a busy machine, it can need two requests to answer."""
    found = -1.0

    def answers() -> bool:
        nonlocal found
        found = figure(stack, "cdc_rebalances_total")
        return found >= 0

    wait_until("it answers", PATIENCE, answers, stack)
    return found


def test_a_restart_moves_nothing(tmp_path: Path) -> None:
    """The other process keeps its partitions, and both continue reading."""
    with Broker() as broker:
        workers = Workers(
            broker, tmp_path, 2, [SOURCE], timing={"session": 120}
        )  # leaves time for a restart on a busy machine
        workers.create(shop=2)
        first, second = workers.stacks
        for stack, name in ((first, "translator-0"), (second, "translator-1")):
            file = stack.directory / "translator.yaml"
            config = yaml.safe_load(file.read_text(encoding="utf-8"))
            file.write_text(yaml.safe_dump({**config, "group_instance_id": name}), encoding="utf-8")
        try:
            workers.start()
            wait_until("each has a partition", PATIENCE, lambda: owns_one(first) and owns_one(second), second)
            before = rebalances(second)
            assert 0 == first.stop("translator")
            first.start("translator")
            for partition in (0, 1):
                workers.feed("shop", [update(1, both=False)] * 10, partition)
                workers.wait_committed("shop", 10, partition)
            wait_until("it has its partition", PATIENCE, lambda: owns_one(first), first)
            assert before == rebalances(second)
            assert 20 == len(workers.events())
        finally:
            workers.close()
