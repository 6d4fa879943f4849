"""Send events in the background. The process never waits for the receiver, except for a few seconds when it ends."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from cdc_core.kafka_settings import Kafka
from cdc_core.lineage.events import JobDatasets, Kind, RunOfJob, event
from cdc_core.lineage.receivers import NotDelivered, Send, receiver
from cdc_core.lineage.settings import Lineage
from cdc_core.otlp import Warn

End: TypeAlias = Literal["COMPLETE", "ABORT", "FAIL"]
"""The end of a run: everything was done, a signal stopped it, or it failed."""

_ROUND_SECONDS = 5.0
"""The time between two rounds. All changes to a job within a round are merged into one event. The number of jobs
therefore limits the number of events, whatever happens to the receiver.
"""

_LAST_SECONDS = 5.0
"""The time for the last events. It limits how long a process waits for a receiver when it ends."""


Describe: TypeAlias = Callable[[], JobDatasets | None]
"""Returns what a job now reads and writes, or None if there is nothing to report."""


class _Run:
    """A run of a job. `job` has the last description."""

    def __init__(self, of: RunOfJob, describe: Describe, parent: RunOfJob | None) -> None:
        self.of = of
        self.began = datetime.now(UTC)
        self.describe = describe
        self.parent = parent
        self.job: JobDatasets | None = None
        self.is_sent = False


class LineageReports(threading.Thread):
    """Reports the start and the changes of jobs while the block runs, and their end when the block ends.

    Args:
        kafka: the connection, for events that are sent to a topic.
        program: the name of the program.
        warn: called when the receiver fails, and when it accepts events again.
        failed: called for each event that was not delivered.
    """

    def __init__(self, settings: Lineage, kafka: Kafka, program: str, warn: Warn, failed: Callable[[], object]) -> None:
        super().__init__(name="lineage", daemon=True)
        self._settings = settings
        self._kafka = kafka
        self._program = program
        self._warn = warn
        self._failed = failed
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._waiting: dict[str, None] = {}
        self._ended = threading.Event()
        self._is_down = False
        self._send: Send | None = None
        self.end: End = "FAIL"
        """The end of all runs. The program sets this before the block ends, unless it fails."""

    def report(self, name: str, describe: Describe, parent: str | None = None) -> None:
        """Report a job that has begun, or whose datasets have changed. This only takes a note.

        Args:
            describe: called in the background, shortly before the event is sent.
            parent: the name of a reported job, whose run contains the runs of this job.
        """
        with self._lock:
            if name not in self._runs:
                of = RunOfJob(str(uuid.uuid4()), self._settings.namespace, name)
                self._runs[name] = _Run(of, describe, None if parent is None else self._runs[parent].of)
            self._waiting[name] = None

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(_LAST_SECONDS)

    def run(self) -> None:
        while not self._ended.wait(_ROUND_SECONDS):
            self._round()
        self._last_round(time.monotonic() + _LAST_SECONDS)

    def _round(self) -> None:
        """Report the jobs that have begun or changed. What is not delivered waits for the next round."""
        with self._lock:
            waiting = list(self._waiting)
        for name in waiting:
            with self._lock:
                # A change during the delivery is reported again.
                self._waiting.pop(name, None)
            run = self._runs[name]
            if self._ended.is_set() or not (self._describe(run) and self._deliver(run, "RUNNING")):
                with self._lock:
                    self._waiting[name] = None
                break

    def _last_round(self, until: float) -> None:
        for name, run in list(self._runs.items()):
            if time.monotonic() >= until:
                break
            if name in self._waiting:
                self._describe(run)
            if not self._deliver(run, self.end):
                break

    def _describe(self, run: _Run) -> bool:
        """Update a job's description. Return whether this succeeded."""
        try:
            run.job = run.describe()
        except Exception as error:  # lineage must not matter to the process, whatever is wrong with it
            self._lost(type(error).__name__)
            return False
        return True

    def _deliver(self, run: _Run, kind: Kind) -> bool:
        """Send an event. If the receiver does not have the event for the start yet, send that one first. Return False
        if the receiver did not accept one of them.
        """
        job = run.job
        if job is None:
            return True
        try:
            if self._send is None:
                self._send = receiver(self._settings, self._kafka)
            if not run.is_sent:
                self._send(self._event("START", run.began, run, job))
                run.is_sent = True
                if kind == "RUNNING":
                    self._restored()
                    return True
            self._send(self._event(kind, datetime.now(UTC), run, job))
        except NotDelivered as error:
            self._lost(str(error))
            return False
        except Exception as error:  # as above
            self._lost(type(error).__name__)
            return False
        self._restored()
        return True

    def _event(self, kind: Kind, at: datetime, run: _Run, job: JobDatasets) -> bytes:
        return event(kind, at, run.of, self._program, job, run.parent)

    def _lost(self, reason: str) -> None:
        with suppress(Exception):
            self._failed()
            if not self._is_down:
                self._warn("lineage receiver failed", to=self._settings.to, reason=reason)
        self._is_down = True

    def _restored(self) -> None:
        if self._is_down:
            self._warn("lineage receiver restored", to=self._settings.to)
        self._is_down = False
