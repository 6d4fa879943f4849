"""A server that does not stop is killed."""

import sys
import time
from pathlib import Path

import pytest

from dev.servers.server import Server, ServerError
from tests.dev.running import alive

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"


class Stubborn(Server):
    name = "stubborn"
    error = ServerError

    def start(self) -> None:
        self._launch([sys.executable, "-c", STUBBORN])
        while not self.log.read_text():
            assert self._running().poll() is None
            time.sleep(0.05)


def test_deaf_to_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is killed after the time for a clean shutdown."""
    monkeypatch.setattr("dev.servers.server.STOP_SECONDS", 0.1)
    with Stubborn() as server:
        pid = server.pid
    assert not alive(pid)


def test_a_folder_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is resolved in our working directory, although the process runs in that folder."""
    monkeypatch.chdir(tmp_path)
    assert tmp_path / "data" == Stubborn(directory=Path("data")).directory
