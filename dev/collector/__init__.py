"""Run the OpenTelemetry collector on this machine. Programs report metrics to the collector, and Prometheus can scrape
it.

`python -m dev.collector` builds the collector once, from the Go module proxy into the user's cache. This takes two
minutes. Go verifies every module against its checksum database.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import ClassVar

import yaml

from dev.jars import cache, only_one
from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.server import Server, ServerError

START_SECONDS = 120.0

BUILD_COMMAND = ".venv/bin/python -m dev.collector"

_HERE = Path(__file__).parent
_SOURCES = ("main.go", "go.mod")


class CollectorError(ServerError):
    """Raised if the collector has not been built or is not running."""


class Collector(Server):
    """A collector that keeps the last values it has received."""

    name: ClassVar[str] = "collector"
    error = CollectorError

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        super().__init__(port, directory)
        self._held: list[socket.socket] = []

    @property
    def endpoint(self) -> str:
        """Return the URL that programs send their reports to."""
        return f"http://{LOOPBACK}:{self.settled_port()}/v1/metrics"

    def start(self) -> None:
        self._refuse_if_running("stop()")
        if not program().is_file():
            raise CollectorError(f"the collector was not built. It needs Go and a few minutes: {BUILD_COMMAND}")
        if not self._held:
            self._held = [hold_port(), hold_port()]
            self.port = self._held[0].getsockname()[1]
        configuration = self.directory / "collector.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration()), encoding="utf-8")
        self._launch([str(program()), "--config", str(configuration)])
        try:
            self._wait_until(self._answers, "the collector", START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def scraped(self) -> str:
        """Return the collected metrics in Prometheus' text format."""
        scrape = f"http://{LOOPBACK}:{self._scrape_port}/metrics"
        with urllib.request.urlopen(scrape, timeout=START_SECONDS) as answer:
            return str(answer.read().decode())

    def close(self) -> None:
        super().close()
        for held in self._held:
            held.close()

    @property
    def _scrape_port(self) -> int:
        return int(self._held[1].getsockname()[1])

    def _configuration(self) -> dict[str, object]:
        return {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{LOOPBACK}:{self.port}"}}}},
            "exporters": {"prometheus": {"endpoint": f"{LOOPBACK}:{self._scrape_port}"}},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["prometheus"]}},
            },
        }

    def _answers(self) -> bool:
        try:
            self.scraped()
            with socket.create_connection((LOOPBACK, self.settled_port()), START_SECONDS):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False


def program() -> Path:
    """Return the program's path, whether or not the program exists. Each version of the program's source has its own
    path.
    """
    sources = b"".join((_HERE / name).read_bytes() for name in _SOURCES)
    return cache() / f"collector-{hashlib.sha256(sources).hexdigest()[:12]}"


def build() -> Path:
    """Build the program if necessary, and return its path.

    Raises:
        CollectorError: Go is missing or cannot fetch the modules.
    """
    made = program()
    with only_one(made):
        if not made.is_file():
            _compile(made)
    return made


def _compile(made: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise CollectorError("the collector needs Go 1.26 or newer, and `go` was not found")
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        for name in _SOURCES:
            shutil.copy(_HERE / name, scratch)
        # go.mod does not list all modules. Go selects the lowest versions that the listed modules require.
        for command in (["mod", "tidy"], ["build", "-trimpath", "-ldflags=-s", "-o", "collector", "."]):
            environment = os.environ | {"CGO_ENABLED": "0"}
            done = subprocess.run(
                [go, *command], cwd=scratch, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                said = done.stderr.strip().splitlines()[-5:]
                raise CollectorError(f"go {' '.join(command)} failed: {'; '.join(said)}")
        Path(scratch, "collector").rename(made)
