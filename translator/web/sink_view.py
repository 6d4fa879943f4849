"""Collect the data about the sink that pages show. It comes from the JSON output of `spark-sink`: tables, batches and
quarantine.

The two programs do not import each other, so the sink's commands run as separate processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from translator.errors import FatalError
from translator.web.kept import Kept

_SECONDS = 10.0
_PATIENCE_SECONDS = 120
_BATCHES, _EVENTS = 20, 200

Answer = TypeVar("Answer")


class SinkConclusion(Struct, frozen=True):
    """A comparison that could decide. `differing` is the number of rows that differ."""

    at: datetime
    differing: int


class SinkVerification(Struct, frozen=True):
    """The last verification of a table against one source; see `spark-sink verify`.

    Args:
        left_out: the number of rows that could not be compared.
        verified_through: the end of the last batch up to which the table is verified, or None if it never was.
        conclusive: the last verification that was not inconclusive, if any.
    """

    at: datetime
    left_out: int
    verified_through: datetime | None
    conclusive: SinkConclusion | None

    @property
    def differing(self) -> int:
        """The number of rows that differed in the last conclusive comparison."""
        return 0 if self.conclusive is None else self.conclusive.differing


class SinkTable(Struct, frozen=True):
    """A table in the lakehouse.

    Args:
        parked: the reason why the table is parked, or None.
        beside: the columns that hold values from another source column with the same name.
        quarantined: number of events that cannot be applied, by reason.
        verified: the last verification against each source.
    """

    table: str
    version: int | None
    parked: str | None
    detail: str | None
    since: str | None
    waiting: int
    beside: Mapping[str, str]
    quarantined: Mapping[str, int]
    verified: Mapping[str, SinkVerification] = {}


class SinkStatus(Struct, frozen=True):
    """The output of `spark-sink status --json`."""

    pipeline: str
    tables: Sequence[SinkTable]
    no_table: Mapping[str, int]
    open_commands: Sequence[str]
    excluded: Sequence[str]


class SinkBatch(Struct, frozen=True):
    """A batch. A batch without a number stands for table changes between two batches.

    Args:
        offsets: for each partition, the first applied offset and the end (exclusive).
        tables: the tables that the batch changed, with their versions.
    """

    batch: int | None
    ended_at: datetime
    offsets: Mapping[str, tuple[int | None, int]]
    tables: Mapping[str, int]


class QuarantinedEvent(Struct, frozen=True):
    """An event that could not be applied, without its row data."""

    reason: str
    target: str
    kafka_partition: int
    kafka_offset: int
    event_id: str | None
    detail: str


class SinkState(Struct, frozen=True):
    """Everything about the sink that a page shows."""

    status: SinkStatus
    batches: Sequence[SinkBatch]
    quarantine: Sequence[QuarantinedEvent]


class SinkView:
    """The data for the sink's page. Each call may take seconds and belongs in a thread.

    Args:
        config: the sink's configuration file.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self._state = Kept(self._look, _SECONDS)

    def state(self) -> SinkState:
        """Return the current state, at most a few seconds old.

        Raises:
            FatalError: the sink's program failed, or its output has a different format. The text gives the reason.
        """
        return self._state.get()

    def _look(self) -> SinkState:
        with ThreadPoolExecutor(3) as pool:
            status = pool.submit(self._told, ["status"], SinkStatus)
            batches = pool.submit(self._told, ["batches", "--limit", str(_BATCHES)], SinkBatch)
            quarantine = pool.submit(self._told, ["quarantine", "ls", "--limit", str(_EVENTS)], QuarantinedEvent)
            (only,) = status.result()
            return SinkState(only, batches.result(), quarantine.result())

    def _told(self, command: Sequence[str], type_: type[Answer]) -> list[Answer]:
        """Return the lines that a command prints."""
        program = [sys.executable, "-m", "spark_sink", *command, "--json", "-c", str(self.config)]
        try:
            ran = subprocess.run(program, capture_output=True, check=False, timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise FatalError(f"spark-sink {command[0]} did not finish within {_PATIENCE_SECONDS} s") from None
        if ran.returncode:
            last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise FatalError(last or f"spark-sink {command[0]} failed with exit code {ran.returncode}")
        try:
            return [msgspec.json.decode(line, type=type_) for line in ran.stdout.splitlines()]
        except msgspec.MsgspecError as error:
            raise FatalError(f"the output of spark-sink {command[0]} --json is not readable: {error}") from None
