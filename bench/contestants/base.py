"""The protocol of a contestant: installation, startup, and the number of records per message."""

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
"""The librdkafka settings of all peers that use it."""


class PointlessError(Exception):
    """Raised if a contestant would repeat another one. Reports leave it out."""


@dataclass(frozen=True)
class Assignment:
    """The work of one contestant in one measurement. The topics exist, and `directory` is empty."""

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
    """A process to start in the directory of the assignment."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = {}


@dataclass(frozen=True)
class Installed:
    """The facts about a contestant in a report: its versions, and the translation path that it uses."""

    versions: str
    way: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


class Contestant(Protocol):
    """A program to compare."""

    @property
    def name(self) -> str: ...

    @property
    def formats(self) -> frozenset[str] | None:
        """The formats that it reads. None: all."""

    @property
    def groups(self) -> bool:
        """Whether its processes are members of the assignment's consumer group."""

    @property
    def warm_share(self) -> float:
        """The share of the messages that it reads before the measurement starts."""

    @property
    def warm_seconds(self) -> float:
        """The maximum time for that share, from its first record on. Some need longer for it than the measurement
        takes.
        """

    def install(self) -> Installed:
        """Install its dependencies, once.

        Raises:
            NotInstalledError: a dependency is not available here.
            PointlessError: it would repeat another contestant.
        """

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        """Write its settings and return its processes."""

    def records(self, stream: MessageStream) -> int:
        """Return the number of records in its output for a whole stream."""


def usual_records(stream: MessageStream) -> int:
    """Return one record for each message with content."""
    return sum(not message.skipped for message in stream.messages)
