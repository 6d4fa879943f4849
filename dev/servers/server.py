"""Run a server process, such as Broker or RegistryServer. It has a directory of its own, and ends together with our
process.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from dev.jars import JarsError
from dev.java import JavaError

TETHER = Path(__file__).with_name("tether.py")

STOP_SECONDS = 30.0  # time for a server to flush and close its files before it is killed
LOG_TAIL_LINES = 30


class ServerError(Exception):
    """Raised if the server is not running. The message contains the end of the server's log, and the log's path."""


class Server(ABC):
    """A server that can be stopped and restarted with the same port and directory.

    If no directory is given, the server creates one. At the end, it removes this directory, unless it died. Linux ends
    the server together with the thread that started it. Start it from a thread that outlives it, such as the main
    thread.
    """

    name: ClassVar[str]  # the name of the server's module and log, also used in messages
    error: ClassVar[type[ServerError]]

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        self.port = port  # None until the first start
        self._owns_directory = directory is None
        # The path is absolute, because the directory is also the process's working directory.
        self.directory = (directory or Path(tempfile.mkdtemp(prefix=f"cdc-{self.name}-"))).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @abstractmethod
    def start(self) -> None:
        """Start the server, and return when it responds. The first start chooses the port, and later starts keep it."""

    def stop(self) -> None:
        """Stop the server gracefully. Its data remains for another start()."""
        self._end(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the server exits, and return its exit code."""
        return self._running().wait()

    def close(self) -> None:
        """Stop the server if it is running. If it created the directory, remove it. Raise an error if the server has
        died.
        """
        died = None if self._process is None else self._process.poll()
        self.stop()
        if died is not None:
            raise self.error(f"the {self.name} exited unexpectedly with code {died}{self._log_tail()}")
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ServerError as ended:
            if error is None:
                raise
            error.add_note(str(ended))  # the likely reason, in addition to the error that it caused

    def _launch(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start the process, tied to ours, with a new log."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-S", TETHER, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=env,
                process_group=0,  # only we receive Ctrl-C from a terminal, and then stop the server gracefully
            )
        atexit.register(self.stop)

    def _end(self, how: signal.Signals) -> None:
        """Send the signal and wait. Do nothing if the server is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self.stop)
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _refuse_if_running(self, remedy: str) -> None:
        if self._process is not None:
            raise self.error(f"the {self.name} is already running as process {self._process.pid}; call {remedy} first")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise self.error(f"the {self.name} is not running; call start() first")
        return self._process

    def _wait_until(self, answers: Callable[[], bool], who: str, seconds: float, expected: str = "respond") -> None:
        """Wait until the server answers. Raise an error if it exits, or does not answer in time."""
        process, deadline = self._running(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise self.error(f"{who} exited with code {process.returncode}{self._log_tail()}")
            if answers():
                return
            time.sleep(0.05)
        raise self.error(f"{who} did not {expected} within {seconds:.0f} s{self._log_tail()}")

    def settled_port(self) -> int:
        """Return the server's port, which is chosen when the server first starts."""
        if self.port is None:
            raise self.error(f"the {self.name} has no address yet; call start() first")
        return self.port

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"; its log, {self.log}, ends:", *lines[-LOG_TAIL_LINES:]])


S = TypeVar("S", bound=Server)
T = TypeVar("T")


def hold(name: str, opened: AbstractContextManager[T], address: Callable[[T], str]) -> int:
    """Run several processes as a command: print their address, and stop them on Ctrl-C or SIGTERM.

    Returns the exit code.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with opened as running:
            print(address(running), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except ServerError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


def run_until_interrupted(kind: type[S], what: str, address: Callable[[S], str]) -> int:
    """Run a server as a command that prints the server's address. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m dev.{kind.name}", description=f"Run a {what} until Ctrl-C.")
    parser.add_argument("--port", type=int, help="Port to listen on. Default: a free port.")
    parser.add_argument("--directory", type=Path, help="Data folder. Default: a temporary folder.")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: stop the server gracefully
    try:
        with kind(arguments.port, arguments.directory) as server:
            print(address(server), flush=True)
            print(f"data and log are in {server.directory}; press Ctrl-C to stop", file=sys.stderr)
            code = server.wait()
            print(f"{kind.name}: exited unexpectedly with code {code}, see {server.log}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0
    except (ServerError, JarsError, JavaError) as error:
        print(f"{kind.name}: {error}", file=sys.stderr)
        return 1
