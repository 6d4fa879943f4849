"""Run the translator as a service: the released program with its defaults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import yaml

from bench.contestants.base import (
    WARM_SECONDS,
    WARM_SHARE,
    Assignment,
    Installed,
    Launch,
    PointlessError,
    usual_records,
)
from bench.generators import MessageStream
from dev.servers.broker import LOOPBACK, free_port

ROOT = Path(__file__).parents[2]
_SWITCH = "CDC_NATIVE"
_PACKAGES = ("faust-streaming", "aiokafka", "confluent-kafka", "msgspec")


@dataclass(frozen=True)
class TranslatorService:
    """One or more processes of `translator run`.

    Args:
        projection: the codec of a projection, which is written in addition to the canonical topic.
        native: whether to use the native path if it has been built.
    """

    name: str
    delivery: str
    projection: str | None = None
    native: bool = True

    formats: frozenset[str] | None = None
    groups: bool = True
    warm_share: float = WARM_SHARE
    warm_seconds: float = WARM_SECONDS

    def install(self) -> Installed:
        """Find out the program's translation path.

        Raises:
            PointlessError: the service should run without the native path, but the native path was not built.
        """
        packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
        said = subprocess.run(
            [sys.executable, "-m", "translator", "--version"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ).stdout
        if not self.native and not way_of(said).startswith("native"):
            raise PointlessError
        way = way_of(said) if self.native else f"python ({_SWITCH}=off)"
        return Installed(f"cdc-translator {version('cdc-translator')}, {packages}", way)

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        return [self._launch(assignment, number) for number in range(assignment.processes)]

    def _launch(self, assignment: Assignment, number: int) -> Launch:
        port = free_port()
        settings = {
            "group": assignment.group,
            "kafka": {"bootstrap_servers": assignment.bootstrap},
            "output": {"topic": assignment.output},
            "topics": {"create": True, "partitions": assignment.spec.partitions},
            "web": {"host": LOOPBACK, "port": port},
            "delivery": self.delivery,
            "sources": [assignment.stream.source(assignment.raw)],
        }
        if self.projection is not None:
            settings["projections"] = [{"topic": f"{assignment.output}.{self.projection}", "codec": self.projection}]
        path = assignment.directory / f"translator-{number}.yaml"
        path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        # Set the path to this checkout, because another version may be installed.
        environment = {"PYTHONPATH": str(ROOT), **({} if self.native else {_SWITCH: "off"})}
        command = (sys.executable, "-m", "translator", "run", "-c", path)
        return Launch(command, environment, port)

    def records(self, stream: MessageStream) -> int:
        """Return one record in the canonical topic for each message with content."""
        return usual_records(stream)


def way_of(said: str) -> str:
    """Return the translation path that `translator --version` prints after the version, or Python if it prints none."""
    _, _, way = said.partition(", version ")[2].strip().partition(", ")
    return way or "python"
