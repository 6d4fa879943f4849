"""Define what contestants implement: how to install and start one, and how many records it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.generators import MessageStream
from bench.generators.history import StreamSpec

WARM_SHARE = 0.1
WARM_SECONDS = 4.0

PRODUCER: Mapping[str, str | int] = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 262_144,
    "acks": "all",
    "queue.buffering.max.messages": 300_000,
    "queue.buffering.max.kbytes": 400_000,
}
"""The librdkafka settings for all peers that use it."""


class PointlessError(Exception):
    """Raised if a contestant would duplicate another. Reports omit the duplicate."""


@dataclass(frozen=True)
class Assignment:
    """One contestant's work in one measurement. The topics exist, and `directory` is empty."""

    format: str
    spec: StreamSpec
    stream: MessageStream
    bootstrap: str
    raw: str
    output: str
    group: str
    directory: Path
    processes: int = 1


class Launch(NamedTuple):
    """A process to start in the assignment's directory."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = {}
    metrics_port: int | None = None
    """The port at which the process serves its metrics, if these include the latency by stage."""


@dataclass(frozen=True)
class Installed:
    """Facts for the report about a contestant: its versions, and its translation path."""

    versions: str
    way: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


class Contestant(Protocol):
    """A program to compare."""

    @property
    def name(self) -> str: ...

    @property
    def formats(self) -> frozenset[str] | None:
        """The formats that the contestant reads, or None for all."""

    @property
    def groups(self) -> bool:
        """Whether its processes join the assignment's consumer group."""

    @property
    def warm_share(self) -> float:
        """The share of messages that the contestant reads before measurement starts."""

    @property
    def warm_seconds(self) -> float:
        """The maximum time for reading this share, beginning with the first record. Some contestants take longer for
        this share than for the measurement itself.
        """

    def install(self) -> Installed:
        """Install the contestant's dependencies, once.

        Raises:
            NotInstalledError: a dependency is not available here.
            PointlessError: the contestant would duplicate another contestant.
        """

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        """Write the contestant's settings, and return its processes."""

    def records(self, stream: MessageStream) -> int:
        """Return the number of records that the contestant writes for the whole stream."""


def usual_records(stream: MessageStream) -> int:
    """Return the number of records from a contestant that writes one record per message with content."""
    return sum(not message.skipped for message in stream.messages)
