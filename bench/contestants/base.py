"""The protocol of a contestant: how it is installed and started, and how many records it makes of a message."""

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
"""Settings of librdkafka that all peers with it have."""


class PointlessError(Exception):
    """A contestant would be another one once more; a report has no word of it."""


@dataclass(frozen=True)
class Assignment:
    """The work of one contestant in one measurement. Topics are there, and `directory` is empty."""

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
    """A process to be started, in the directory of the assignment."""

    command: Sequence[str | Path]
    environment: Mapping[str, str] = {}


@dataclass(frozen=True)
class Installed:
    """What a report says of a contestant: its versions, and which way of several it takes."""

    versions: str
    way: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


class Contestant(Protocol):
    """A way to do the work."""

    @property
    def name(self) -> str: ...

    @property
    def formats(self) -> frozenset[str] | None:
        """The formats that it reads; None: all."""

    @property
    def groups(self) -> bool:
        """True where its processes are members of the consumer group of the assignment."""

    @property
    def warm_share(self) -> float:
        """The share of the messages that it reads before it is measured."""

    @property
    def warm_seconds(self) -> float:
        """After its first record, at most: some take longer for that share than they are measured."""

    def install(self) -> Installed:
        """Fetch what it needs, once.

        Raises:
            NotInstalledError: it cannot be had here.
            PointlessError: another contestant is the same.
        """

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        """Write its settings, and return its processes."""

    def records(self, stream: MessageStream) -> int:
        """Return how many records it writes to its output for a whole stream."""


def usual_records(stream: MessageStream) -> int:
    """One for each message that says anything."""
    return sum(not message.skipped for message in stream.messages)
