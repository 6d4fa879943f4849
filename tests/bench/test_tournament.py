"""Contestants on a real broker: their output is counted, and failures come with a reason. No figure is asserted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bench.contestants.base import Assignment, Installed, Launch, PointlessError
from bench.contestants.peers import BareLoop
from bench.contestants.service import TranslatorService
from bench.plan import SMALLEST, Heat
from bench.report.markdown import STAGES
from bench.results import BenchCase, BenchResult
from bench.runner.tournament import Tournament
from dev.environments import NotInstalledError
from dev.servers.broker import Broker

TOTAL = 1_500


@dataclass(frozen=True)
class LocalLoop(BareLoop):
    """The bare loop in this Python, so that the test installs nothing."""

    name: str = "loop"

    def install(self) -> Installed:
        return Installed("this Python")

    def _python(self) -> Path:
        return Path(sys.executable)


@dataclass(frozen=True)
class Broken(LocalLoop):
    """A contestant that ends immediately."""

    name: str = "broken"

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        return [Launch([sys.executable, "-c", "import sys; sys.exit('out of luck')"])]


@dataclass(frozen=True)
class Absent(LocalLoop):
    """A contestant that cannot be installed."""

    name: str = "absent"

    def install(self) -> Installed:
        raise NotInstalledError("nobody has it")


@dataclass(frozen=True)
class Same(LocalLoop):
    """A contestant that is identical to another one."""

    name: str = "same"

    def install(self) -> Installed:
        raise PointlessError


@dataclass(frozen=True)
class Misread(TranslatorService):
    """A translator whose source declares the wrong dialect, so every message becomes a dead letter."""

    def launches(self, assignment: Assignment) -> Sequence[Launch]:
        other = assignment.stream._replace(dialect="dts_avro", options={})
        return super().launches(replace(assignment, stream=other))


def _run(broker: Broker, heats: Sequence[Heat], said: list[str], seconds: float = 0.0) -> BenchResult:
    contestants = (
        LocalLoop(),
        Broken(),
        Absent(),
        Same(),
        TranslatorService("translator", "at_least_once"),
        TranslatorService("translator, exactly once", "exactly_once"),
    )
    table = {contestant.name: contestant for contestant in contestants}
    profile = replace(SMALLEST, latency_seconds=seconds)
    return Tournament(broker.bootstrap, profile, 7, said.append, table).run(heats)


def test_turns(broker: Broker) -> None:
    """Everyone reads all messages in each round, and the second round is in reverse order.

    A failing contestant is tried once, and a redundant one has no line.
    """
    names = ("translator", "broken", "absent", "same", "loop")
    said: list[str] = []
    result = _run(broker, [Heat([BenchCase("contestants", "canal", name) for name in names], TOTAL, 2)], said)
    found = {one.case.contestant: one for one in result.cases}
    runs = {name: len(one.runs) for name, one in found.items()}
    assert {"translator": 2, "broken": 0, "absent": 0, "loop": 2} == runs
    for name in ("translator", "loop"):
        for run in found[name].runs:
            assert 0 < run.messages <= TOTAL
            # The kernel counts hundredths of a second and can miss the few messages, but not the start.
            assert run.cpu_us >= 0
            assert (run.startup_cpu_seconds or 0) > 0
            assert run.startup_seconds > 0
            assert run.resident_mib > 10
            assert run.rate == pytest.approx(run.messages / run.seconds, rel=0.01)
            assert run.megabytes_per_second == pytest.approx(run.rate * found[name].bytes_per_message / 1e6)
    assert (found["broken"].failure or "").startswith("exited with code 1")
    assert "out of luck" in (found["broken"].failure or "")
    assert "nobody has it" == found["absent"].failure == result.contestants["absent"].missing
    turns = [line.strip().partition(":")[0] for line in said if line.startswith("  ") and " k/s" in line]
    assert ["translator", "loop", "loop", "translator"] == turns


def test_metadata_tables_and_unusual_messages(broker: Broker) -> None:
    """A source with a metadata topic, many tables and partitions runs in two processes, and its latency is measured."""
    case = BenchCase("tables", "qlik_json", "translator", tables=50, partitions=8, unusual=0.1, processes=2)
    said: list[str] = []
    (found,) = _run(broker, [Heat([case], TOTAL, 1, latency=True)], said, seconds=1.0).cases
    assert found.failure is None, said
    assert 1 == len(found.runs)
    assert found.latency is not None, said
    assert found.latency.messages > 0
    assert 0 < found.latency.p50_ms <= found.latency.p99_ms <= found.latency.most_ms


def test_latency_at_a_fixed_rate(broker: Broker) -> None:
    """The loop's records do not identify their messages, but arrive in the same order. A failure has its reason."""
    names = ("translator", "loop", "broken", "absent")
    cases = [BenchCase("latency", "canal", name, rate=200.0) for name in names]
    said: list[str] = []
    found = {one.case.contestant: one for one in _run(broker, [Heat(cases, 0, 0)], said, seconds=1.0).cases}
    for name in ("translator", "loop"):
        late = found[name].latency
        assert late is not None, said
        assert 200.0 == late.rate
        assert 0 < late.messages
        assert 0 < late.p50_ms <= late.p99_ms <= late.most_ms
        assert late.cpu_us is not None
        assert late.feeder_p99_ms is not None
        assert (set(STAGES) if name == "translator" else set()) == late.stages.keys()
        for stage in late.stages.values():
            assert 0 < stage.p50_ms <= stage.p99_ms
    assert "out of luck" in (found["broken"].failure or "")
    assert "nobody has it" == found["absent"].failure


def test_rate_that_cannot_be_fed(broker: Broker) -> None:
    """The feeder's failure is the case's failure, and does not end the benchmark."""
    case = BenchCase("latency", "canal", "loop", rate=1e9)
    (found,) = _run(broker, [Heat([case], 0, 0)], [], seconds=1.0).cases
    assert found.latency is None
    assert "the feeder failed" in (found.failure or "")


def test_nothing_that_is_measured_is_refused(broker: Broker) -> None:
    """A translator that writes dead letters has failed."""
    said: list[str] = []
    profile = replace(SMALLEST, latency_seconds=0.0)
    misread = {"translator": Misread("translator", "exactly_once")}
    heat = Heat([BenchCase("contestants", "canal", "translator")], TOTAL, 1)
    (found,) = Tournament(broker.bootstrap, profile, 7, said.append, misread).run([heat]).cases
    assert [] == found.runs
    assert "dead letters" in (found.failure or "")
