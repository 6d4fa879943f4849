"""Run the peers in Python: the bare loop, Bytewax, Quix Streams, and Faust as in its documentation."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contestants.base import (
    PRODUCER,
    WARM_SECONDS,
    WARM_SHARE,
    Assignment,
    Installed,
    Launch,
    usual_records,
)
from bench.generators import MessageStream
from bench.generators._qlik import schema_id
from bench.generators.history import tables_of
from bench.generators.qlik_avro import ENVELOPE_SCHEMA, data_schema
from dev.environments import NotInstalledError, environment, versions
from translator.dialects.dts_avro import schema as dts_schema

PROGRAMS = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class _PythonPeer:
    """A program from programs/, in its own environment. The program receives its job as a file."""

    name: str = ""
    program: str = ""
    packages: tuple[str, ...] = ()
    groups: bool = True
    formats: frozenset[str] | None = None
    warm_share: float = WARM_SHARE
    warm_seconds: float = WARM_SECONDS

    def install(self) -> Installed:
        """Create the program's environment."""
        python = self._python()
        return Installed(versions(python, [package.partition("==")[0] for package in self.packages]))

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        path = assignment.directory / "job.json"
        path.write_text(json.dumps(_job(assignment)), encoding="utf-8")
        return [self._launch(path)] * assignment.processes

    def records(self, stream: MessageStream) -> int:
        return usual_records(stream)

    def _launch(self, job: Path) -> Launch:
        return Launch([self._python(), PROGRAMS / self.program, job])

    def _python(self) -> Path:
        return environment(self.program.partition(".")[0], self.packages)


@dataclass(frozen=True)
class BareLoop(_PythonPeer):
    """The bare loop, with confluent-kafka and orjson. If these cannot be installed, the loop uses this project's
    msgspec.
    """

    name: str = "bare loop"
    program: str = "loop.py"
    packages: tuple[str, ...] = ("confluent-kafka==2.16.1", "orjson==3.13.0", "fastavro==1.13.1")

    def install(self) -> Installed:
        """Create an environment for the program, if possible."""
        try:
            return super().install()
        except NotInstalledError as error:
            return Installed(versions(Path(sys.executable), ("confluent-kafka", "msgspec")), notes=(str(error),))

    def _python(self) -> Path:
        try:
            return super()._python()
        except NotInstalledError:
            return Path(sys.executable)


@dataclass(frozen=True)
class Bytewax(_PythonPeer):
    """A Bytewax dataflow with one worker."""

    name: str = "Bytewax"
    program: str = "bytewax_flow.py"
    packages: tuple[str, ...] = ("bytewax==0.21.1", "confluent-kafka==2.16.1", "orjson==3.13.0")
    groups: bool = False
    formats: frozenset[str] | None = frozenset({"canal"})

    def _launch(self, job: Path) -> Launch:
        environment = {"PYTHONPATH": str(PROGRAMS), "BENCH_JOB": str(job)}
        return Launch([self._python(), "-m", "bytewax.run", PROGRAMS / self.program], environment)


@dataclass(frozen=True)
class QuixStreams(_PythonPeer):
    """A Quix Streams application with one process."""

    name: str = "Quix Streams"
    program: str = "quix_app.py"
    packages: tuple[str, ...] = ("quixstreams==3.28.1", "orjson==3.13.0")
    formats: frozenset[str] | None = frozenset({"canal"})


@dataclass(frozen=True)
class PlainFaust(_PythonPeer):
    """A Faust agent with one process, with this project's version of Faust."""

    name: str = "plain Faust"
    program: str = "faust_app.py"
    packages: tuple[str, ...] = (
        "faust-streaming==0.15.3",
        "mode-streaming==0.7.1",
        "aiokafka==0.14.0",
        "cramjam==2.14.0",
        "orjson==3.13.0",
    )
    formats: frozenset[str] | None = frozenset({"canal"})

    def _launch(self, job: Path) -> Launch:
        return Launch([self._python(), PROGRAMS / self.program, job, "worker"])


def _job(assignment: Assignment) -> dict[str, Any]:
    tables = tables_of(assignment.spec)
    schemas: dict[str, dict[str, Any]] = {
        "dts_avro": {"schema": dts_schema.V3},
        "qlik_avro": {"schema": data_schema(tables[0].columns), "envelope_schema": ENVELOPE_SCHEMA},
    }
    return {
        "format": assignment.format,
        "bootstrap": assignment.bootstrap,
        "raw": assignment.raw,
        "output": assignment.output,
        "group": assignment.group,
        "producer": dict(PRODUCER),
        "key": tables[0].columns[0].name,
        "tables": {schema_id(table): table.name for table in tables},
        **schemas.get(assignment.format, {}),
    }
