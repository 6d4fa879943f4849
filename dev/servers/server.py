"""A server process of ours, as Broker and RegistryServer are: it lives in a directory and ends when we do."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from dev.jars import JarsError
from dev.java import JavaError

TETHER = Path(__file__).with_name("tether.py")

STOP_SECONDS = 30.0  # it flushes and closes its files; then it is killed
LOG_TAIL_LINES = 30


class ServerError(Exception):
    """The server does not run; the message holds the end of its log and where the rest is."""


class Server(ABC):
    """A server that can be stopped and started again: its port stays, and what is in its directory too.

    Without a directory it makes one, and removes it at the end unless it died by itself. Start it from a thread that
    outlives it (the main thread, say): Linux ends it together with the thread that started it.
    """

    name: ClassVar[str]  # of its module, its log, and in what we say of it
    error: ClassVar[type[ServerError]]

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        self.port = port  # None until the first start has settled it
        self._owns_directory = directory is None
        # Whole, because it is also the folder in which the process runs.
        self.directory = (directory or Path(tempfile.mkdtemp(prefix=f"cdc-{self.name}-"))).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @abstractmethod
    def start(self) -> None:
        """Return when it answers. The first start settles the port; later ones keep it."""

    def stop(self) -> None:
        """End it in order; its data stay for another start()."""
        self._end(signal.SIGTERM)

    def wait(self) -> int:
        """Return its exit code when it ends by itself."""
        return self._running().wait()

    def close(self) -> None:
        """Stop it, if it runs, and remove the directory, if it is our own. One that died by itself is an error."""
        died = None if self._process is None else self._process.poll()
        self.stop()
        if died is not None:
            raise self.error(f"the {self.name} ended by itself with exit code {died}{self._log_tail()}")
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
            error.add_note(str(ended))  # the likely reason, beside the error that it caused

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
                process_group=0,  # Ctrl-C in a terminal is for us; we then stop it in order
            )
        atexit.register(self.stop)

    def _end(self, how: signal.Signals) -> None:
        """Send the signal and wait; nothing happens when it does not run."""
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
            raise self.error(f"the {self.name} runs already (process {self._process.pid}); call {remedy} first")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise self.error(f"the {self.name} does not run; call start()")
        return self._process

    def settled_port(self) -> int:
        """Its port, which it has from its first start on."""
        if self.port is None:
            raise self.error(f"the {self.name} has no address before its first start; call start()")
        return self.port

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"; its log, {self.log}, ends:", *lines[-LOG_TAIL_LINES:]])


S = TypeVar("S", bound=Server)
T = TypeVar("T")


def hold(name: str, opened: AbstractContextManager[T], address: Callable[[T], str]) -> int:
    """The command line of what is several processes: it prints the address, and holds them until Ctrl-C or SIGTERM.

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
    """The command line of a server, which prints its address; returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m dev.{kind.name}", description=f"Run a {what} until Ctrl-C.")
    parser.add_argument("--port", type=int, help="its port; a free one when not given")
    parser.add_argument("--directory", type=Path, help="where it keeps its data; when not given, removed at the end")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same as Ctrl-C: the server is stopped in order
    try:
        with kind(arguments.port, arguments.directory) as server:
            print(address(server), flush=True)
            print(f"data and log in {server.directory}; Ctrl-C ends it", file=sys.stderr)
            code = server.wait()
            print(f"{kind.name}: ended by itself with exit code {code}, see {server.log}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0
    except (ServerError, JarsError, JavaError) as error:
        print(f"{kind.name}: {error}", file=sys.stderr)
        return 1
