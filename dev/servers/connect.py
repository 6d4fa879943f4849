"""Run a real Kafka Connect worker with one connector, for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dev.java import find_java
from dev.servers.server import Server, ServerError

_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


class ConnectError(ServerError):
    """Raised if the Kafka Connect worker is not running."""


class ConnectWorker(Server):
    """A standalone worker with one connector, which reads and writes JSON with schemas.

    Args:
        jars: the folder with Kafka Connect and the connector.
        connector: the connector's properties.
    """

    name = "connect"
    error = ConnectError

    def __init__(self, jars: Path, bootstrap: str, connector: Mapping[str, str]) -> None:
        super().__init__()
        self._jars = jars
        self._write(
            "worker",
            {
                "bootstrap.servers": bootstrap,
                "listeners": "http://127.0.0.1:0",
                **{f"{of}.converter": _CONVERTER for of in ("key", "value")},
                **{f"{of}.converter.schemas.enable": "true" for of in ("key", "value")},
                # By default, the worker infers a header's type from its text. This fails for key changes, which have
                # keys in their headers.
                "header.converter": "org.apache.kafka.connect.storage.StringConverter",
                "offset.storage.file.filename": str(self.directory / "offsets"),
                "offset.flush.interval.ms": "500",
                "consumer.auto.offset.reset": "earliest",
                "consumer.isolation.level": "read_committed",
            },
        )
        self._write("connector", connector)

    def start(self) -> None:
        self._refuse_if_running("stop()")
        files = [str(self.directory / f"{name}.properties") for name in ("worker", "connector")]
        program = "org.apache.kafka.connect.cli.ConnectStandalone"
        java = [str(find_java().executable), "-Xmx1g", "-cp", f"{self._jars}/*"]
        self._launch([*java, program, *files])

    def check(self) -> None:
        """Check that the worker is still running.

        Raises:
            ConnectError: the worker or its connector has failed.
        """
        said = self.log.read_text(encoding="utf-8", errors="replace")
        if self._running().poll() is not None or re.search("Task is being killed|Failed to create connector", said):
            reasons = [line for line in said.splitlines() if "ERROR" in line or line.startswith("Caused by")]
            raise ConnectError(f"Kafka Connect failed: {' '.join(reasons[-5:])}")

    def _write(self, name: str, settings: Mapping[str, str]) -> None:
        text = "".join(f"{setting}={value}\n" for setting, value in settings.items())
        (self.directory / f"{name}.properties").write_text(text, encoding="utf-8")
