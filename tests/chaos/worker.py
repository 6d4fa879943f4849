"""A worker under a supervisor that restarts it whenever it ends, as in production."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from dev.servers.broker import free_port
from dev.servers.server import TETHER

ROOT = Path(__file__).parents[2]
_PAUSE = 0.3
_STOP_SECONDS = 60.0
_PATIENCE = 180.0  # on a busy machine, a start alone takes half a minute

PORT = "WEB_PORT"
"""Environment variable: a port that is free at each start."""

Death = tuple[str, int]
"""The stage and number for `tests.chaos.launcher`."""


class Worker:
    """One translator process at a time.

    Args:
        deaths: each start takes the next one until none is left. A start that ends otherwise leaves it to the next.
        on_kill: called when a process has killed itself.
    """

    def __init__(
        self,
        name: str,
        config: Path,
        deaths: Iterable[Death] = (),
        on_kill: Callable[[str], None] = lambda _: None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.codes: list[int] = []
        self.killed = 0
        self._config = config
        self._deaths = deque(deaths)
        self._on_kill = on_kill
        self._arguments = arguments
        self._keep = True
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)
        self._thread.start()

    @property
    def log(self) -> Path:
        return self._config.with_suffix(".log")

    @property
    def pid(self) -> int:
        """Return the pid of the running process. Wait for one if necessary."""
        while (process := self._process) is None or process.poll() is not None:
            time.sleep(0.02)
        return process.pid

    def _supervise(self) -> None:
        # The path is that of this checkout. The installed package can be a different one.
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        while self._keep:
            environment[PORT] = str(free_port())
            die = self._deaths[0] if self._deaths else None
            options = ["--die", f"{die[0]}:{die[1]}"] if die else []
            command = [sys.executable, "-m", "tests.chaos.launcher", *options, "run", *self._arguments]
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-S", TETHER, str(os.getpid()), *command, "-c", self._config],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._config.parent,
                    env=environment,
                )
            code = self._process.wait()
            self.codes.append(code)
            if code == -signal.SIGKILL and die:
                self._deaths.popleft()
                self._on_kill(f"SIGKILL at {die[0]} {die[1]}")
                self.killed += 1
            if self._keep:
                time.sleep(_PAUSE)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_killed(self, times: int) -> None:
        """Wait until it has killed itself that many times."""
        for number in range(1, times + 1):
            self._wait(lambda number=number: self.killed >= number, "did not reach its stage")

    def wait_ended(self, times: int) -> None:
        """Wait until it has ended that many times."""
        self._wait(lambda: len(self.codes) >= times, "did not end")

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ready():
            assert time.monotonic() < deadline, f"{self.name} {what}; exit codes {self.codes}"
            time.sleep(0.05)

    def stop(self) -> int:
        """Stop it cleanly and permanently, and return the exit code."""
        self._keep = False
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            self.kill()
        return self.codes[-1]

    def kill(self) -> None:
        """Kill it permanently."""
        self._keep = False
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._thread.join(10)
