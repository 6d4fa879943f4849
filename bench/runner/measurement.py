"""Measure a contestant that reads a full topic. Take one sample when it is warm, and another one at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from bench.contestants.base import Assignment, Contestant
from bench.results import RunFigures
from bench.runner.running import ContestantError, Running
from bench.runner.topics import Topics

END_SHARE = 0.97
COLD_SHARE = 0.75
"""If the contestant reads more than this share of the messages before the clock starts, too few remain for the
measurement.
"""
_HANG_SECONDS = 240.0
_POLL_SECONDS = 0.05
_CHECK_SECONDS = 1.0


class RawTopic(NamedTuple):
    """The content of a raw topic."""

    name: str
    total: int
    bytes: int


class _Look(NamedTuple):
    at: float
    messages: float
    cpu_seconds: float


def measure(
    contestant: Contestant, assignment: Assignment, raw: RawTopic, topics: Topics, seconds: float
) -> RunFigures:
    """Run a contestant until it has read the whole topic, or for this number of seconds.

    Raises:
        ContestantError: the contestant exited, hung, or rejected a message.
    """
    letters = f"{assignment.output}.dlq"
    # Create both topics here, because a client that has received an unknown-topic error keeps reporting this error for
    # a while.
    for name in (assignment.output, letters):
        topics.create(name, assignment.spec.partitions)
    share = contestant.records(assignment.stream) / len(assignment.stream.messages)
    with Running(contestant.launches(assignment), assignment.directory) as running:

        def look() -> _Look:
            records = topics.records(assignment.output, assignment.spec.partitions)
            return _Look(time.monotonic(), records / share, running.usage().cpu_seconds)

        def check() -> None:
            """Check that no message was rejected."""
            running.check()
            refused = topics.records(letters, assignment.spec.partitions)
            if refused:
                raise ContestantError(f"wrote {refused} dead letters")

        first = _wait(running, look, check, lambda now: now.messages > 0)
        # All processes must have their partitions before the clock starts.
        together = contestant.groups and assignment.processes > 1
        begin = _wait(
            running,
            look,
            check,
            lambda now: (
                (now.messages >= contestant.warm_share * raw.total or now.at - first.at >= contestant.warm_seconds)
                and (not together or topics.members(assignment.group) == assignment.processes)
            ),
        )
        warm = begin.messages <= COLD_SHARE * raw.total
        if not warm:
            begin = _Look(running.started, 0.0, 0.0)
        end = _wait(
            running, look, check, lambda now: now.messages >= END_SHARE * raw.total or now.at - begin.at >= seconds
        )
        resident = running.usage().resident_bytes
        check()
    messages, passed = end.messages - begin.messages, end.at - begin.at
    return RunFigures(
        messages=round(messages),
        seconds=passed,
        rate=messages / passed,
        megabytes_per_second=messages / passed * raw.bytes / raw.total / 1e6,
        cpu_us=(end.cpu_seconds - begin.cpu_seconds) / messages * 1e6,
        resident_mib=resident / 2**20,
        startup_seconds=first.at - running.started,
        startup_cpu_seconds=first.cpu_seconds,
        warm=warm,
    )


def _wait(
    running: Running, look: Callable[[], _Look], check: Callable[[], None], ready: Callable[[_Look], bool]
) -> _Look:
    """Poll until the condition is true, and return the sample from that moment. From time to time, run a check that may
    raise an error.
    """
    begun = checked = time.monotonic()
    deadline = begun + _HANG_SECONDS
    while True:
        now = look()
        if ready(now):
            return now
        if now.at - checked > _CHECK_SECONDS:
            check()
            checked = now.at
        if now.at > deadline:
            raise ContestantError(f"wrote only {now.messages:.0f} messages in {_HANG_SECONDS:.0f} s: {running.tail()}")
        time.sleep(_POLL_SECONDS)
