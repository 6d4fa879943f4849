"""A contestant's running processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.contestants.base import Launch
from bench.processes import Usage, usage
from dev.servers.broker import LOOPBACK
from dev.servers.server import TETHER

_STOP_SECONDS = 60.0
_LOG_LINES = 3
_ANSWER_SECONDS = 30.0


class ContestantError(Exception):
    """Raised if a contestant failed. The message contains the end of its log."""


class Running:
    """A context manager that runs processes. At the end, it stops the processes, and kills any that do not stop."""

    def __init__(self, launches: Sequence[Launch], directory: Path) -> None:
        self._launches = launches
        self._directory = directory
        self._log = directory / "log"
        self._processes: list[subprocess.Popen[bytes]] = []
        self.started = 0.0

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        with self._log.open("wb") as log:
            for launch in self._launches:
                tied: list[str] = [sys.executable, "-S", str(TETHER), str(os.getpid()), *map(str, launch.command)]
                self._processes.append(
                    subprocess.Popen(
                        tied,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        cwd=self._directory,
                        env={**os.environ, **launch.environment},
                    )
                )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_STOP_SECONDS)

    def usage(self) -> Usage:
        """Return the total usage of all processes."""
        return usage(process.pid for process in self._processes)

    def metrics(self) -> list[str]:
        """Return the metrics pages of all processes that have one.

        Raises:
            ContestantError: a process does not respond.
        """
        try:
            return [_page(launch.metrics_port) for launch in self._launches if launch.metrics_port is not None]
        except OSError as error:
            raise ContestantError(f"does not report its metrics ({error}): {self.tail()}") from None

    def check(self) -> None:
        """Raise ContestantError if any of the processes has exited."""
        for process in self._processes:
            if process.poll() is not None:
                raise ContestantError(f"exited with code {process.returncode}: {self.tail()}")

    def tail(self) -> str:
        """Return the log's last lines as one line."""
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return " / ".join(line[:300] for line in lines[-_LOG_LINES:])


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=_ANSWER_SECONDS) as answer:
        found: bytes = answer.read()
        return found.decode()
