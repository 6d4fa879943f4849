"""The fault matrix as a table: the fault, the brokers, and the size of the case in its long and short forms.

The long form (`make chaos`) runs all of `MATRIX`. The short form is part of `make test-faults` and has to be fast.
Starting a worker takes seconds, and starting three brokers takes more. So it runs `SHORT`, three cases that combine
several faults on one set of workers. Every line of the matrix says which of them covers it (`short`), or why none does
(`only_long`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.chaos import scenarios

Brokers = Literal[1, 3]

PIPELINE = ("poll", "translate", "produce", "report", "commit")
LEARNING = ("learn-read", "learn-taught", "learn-told")

# For brokers that must be back within timing.delivery. On a busy machine, a start took 16 s.
PATIENT = {"delivery": 60.0, "rebalance": 75.0}


@dataclass(frozen=True)
class Size:
    """The size of a case.

    Args:
        messages: the minimum. While faults happen, more are fed at `rate` per second.
        head: the share that is fed before the workers start.
        parameters: of the scenario.
    """

    parameters: Mapping[str, Any]
    messages: int = 100_000
    rate: float = 1000
    head: float = 0.3


@dataclass(frozen=True)
class Case:
    """One line of the matrix.

    Args:
        faults: what happens, in words.
        brokers: their number. Three form a cluster.
        timing: overrides for `run.TIMING`.
        short: the case of the short form that covers it.
    """

    name: str
    faults: str
    scenario: Callable[..., None]
    size: Size
    brokers: Brokers = 1
    input: str = "canal"
    transactional: bool = False
    raw_config: dict[str, str] = field(default_factory=dict)
    output_config: dict[str, str] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    short: str | None = None
    only_long: str = ""


def _kills_at(stage: str, text: str) -> Case:
    size = Size({"stages": (stage,), "rounds": 5})
    return Case(f"kill-{stage}", f"SIGKILL {text}", scenarios.kills, size, short="short-kills")


MATRIX: tuple[Case, ...] = (
    _kills_at("poll", "after poll"),
    _kills_at("translate", "after translate"),
    _kills_at("produce", "after produce, before the report"),
    _kills_at("report", "after the report, before commit"),
    _kills_at("commit", "when the commit is about to be sent"),
    Case(
        "kill-learning",
        "SIGKILL before, in and after learning metadata",
        scenarios.kills,
        Size({"stages": LEARNING, "rounds": 3}),
        input="qlik",
        short="short-kills",
    ),
    Case(
        "sigterm",
        "SIGTERM",
        scenarios.terminations,
        Size({"rounds": 5}),
        only_long="tests/integration stop workers in order all the time",
    ),
    Case(
        "sigstop",
        "SIGSTOP for 14 s, session 6 s, two workers",
        scenarios.freezes,
        Size({"rounds": 3, "seconds": 14}),
        short="short-mixed",
    ),
    Case("scale", "1 to 3 to 1 workers", scenarios.scale, Size({"rounds": 2}), short="short-mixed"),
    Case(
        "churn",
        "a worker added or removed every 20 s for 5 minutes",
        scenarios.churn,
        Size({"seconds": 300, "every": 20}, rate=500),
        only_long="it takes five minutes; short-mixed adds and removes one",
    ),
    Case(
        "broker-kill",
        "the broker SIGKILLed, and back within timing.delivery",
        scenarios.broker_kills,
        Size({"rounds": 3, "down": 2}),
        short="short-mixed",
        timing=PATIENT,
    ),
    Case(
        "broker-outage",
        "the broker SIGKILLed, and absent for longer than timing.delivery",
        scenarios.broker_kills,
        Size({"rounds": 2, "down": 25}),
        only_long="it waits for nothing but the end of timing.delivery; below-min-isr does in the short form",
    ),
    Case(
        "leader-change",
        "leaders of raw and canonical partitions SIGKILLed, and moved back",
        scenarios.leader_changes,
        Size({"rounds": 4}),
        brokers=3,
        short="short-cluster",
    ),
    Case(
        "coordinator-move",
        "the group's coordinator stopped or SIGKILLed",
        scenarios.coordinator_moves,
        Size({"rounds": 4}),
        brokers=3,
        short="short-cluster",
    ),
    Case(
        "below-min-isr",
        "canonical topic below min.insync.replicas for 60 s",
        scenarios.below_min_isr,
        Size({"seconds": 60}),
        brokers=3,
        output_config={"min.insync.replicas": "3"},
        short="short-cluster",
    ),
    Case(
        "topic-recreated",
        "the raw topic deleted and created again while the worker runs",
        scenarios.made_again,
        Size({"rounds": 2}, messages=50_000),
        only_long="tests/integration/test_gap.py has it",
    ),
    Case(
        "poison",
        "1 % of the messages unreadable; SIGKILL at every stage",
        scenarios.kills,
        Size({"stages": PIPELINE, "rounds": 1}),
        input="poisoned",
        short="short-mixed",
    ),
    Case(
        "compacted",
        "gaps in offsets by compaction; SIGKILL at every stage",
        scenarios.compacted_then_kills,
        Size({"stages": PIPELINE, "rounds": 1}, head=0.6),
        raw_config={"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"},
        only_long="the broker compacts when it likes; short-kills has gaps, by transactions",
    ),
    Case(
        "transactional",
        "gaps in offsets by transactions, one in five aborted; SIGKILL at every stage",
        scenarios.kills,
        Size({"stages": PIPELINE, "rounds": 1}),
        transactional=True,
        short="short-kills",
    ),
)

SHORT: tuple[Case, ...] = (
    Case(
        "short-kills",
        "SIGKILL at four stages, out of transactional input",
        scenarios.kills,
        Size({"stages": ("translate", "produce", "commit", "learn-taught"), "rounds": 1}, messages=8_000, rate=500),
        input="qlik",
        transactional=True,
    ),
    Case(
        "short-mixed",
        "1 to 2 workers, SIGSTOP, broker SIGKILL, 2 to 1 workers; poison",
        scenarios.mixed,
        Size({"stop": 8, "down": 1}, messages=10_000, rate=500),
        input="poisoned",
        timing=PATIENT,
    ),
    Case(
        "short-cluster",
        "the group's coordinator SIGKILLed, and with it the canonical topic below min.insync.replicas",
        scenarios.below_min_isr,
        Size({"seconds": 8, "coordinator": True}, messages=8_000, rate=500),
        brokers=3,
        output_config={"min.insync.replicas": "3"},
        timing={"delivery": 4},
    ),
)

CASES = {case.name: case for case in (*MATRIX, *SHORT)}

BROKER_SETTINGS = {"log.cleaner.backoff.ms": "500"}  # compact whenever possible
