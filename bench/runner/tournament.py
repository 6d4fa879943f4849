"""Run all heats in a profile. Let contestants take turns on the same messages, in alternating order."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.contestants import CONTESTANTS
from bench.contestants.base import Assignment, Contestant, PointlessError
from bench.generators import MessageStream, generate
from bench.generators.history import StreamSpec
from bench.plan import DELIVERIES, BenchProfile, Heat
from bench.results import BenchCase, BenchResult, CaseResult, ContestantFacts, MachineFacts, StepFigures
from bench.runner.latency import measure_latency
from bench.runner.measurement import RawTopic, measure
from bench.runner.running import ContestantError
from bench.runner.topics import Topics
from bench.steps.pipeline import step_costs
from dev.environments import NotInstalledError

_STEP_ROUNDS = 3

Say = Callable[[str], None]


class Tournament:
    """A tournament on one broker.

    Args:
        say: called with each progress message.
        contestants: the contestants, keyed by their names in cases.
    """

    def __init__(
        self,
        bootstrap: str,
        profile: BenchProfile,
        seed: int,
        say: Say,
        contestants: Mapping[str, Contestant] = CONTESTANTS,
    ) -> None:
        self._bootstrap = bootstrap
        self._contestants = contestants
        self._profile = profile
        self._seed = seed
        self._say = say
        self._topics = Topics(bootstrap)
        self._number = 0
        # A unique prefix allows several tournaments on one broker.
        self._prefix = f"bench-{os.getpid()}-{time.monotonic_ns() % 10**9}"
        self._installed: dict[str, ContestantFacts] = {}

    def run(self, heats: Sequence[Heat]) -> BenchResult:
        """Install the contestants, run all heats, and then measure the steps. Failures are recorded in the result."""
        load = os.getloadavg()[0]
        names = dict.fromkeys(case.contestant for heat in heats for case in heat.cases)
        self._installed = {
            name: facts for name in names if (facts := self._install(self._contestants[name])) is not None
        }
        begun = time.monotonic()
        results: list[CaseResult] = []
        for number, heat in enumerate(heats, 1):
            case = heat.cases[0]
            passed = (time.monotonic() - begun) / 60
            messages = f"{heat.total} messages" if heat.total else "messages"
            self._say(f"[{number}/{len(heats)}, {passed:.0f} min] {describe(case)}: generating {messages}")
            results += self._at_rate(heat) if case.rate else self._heat(heat)
        formats = dict.fromkeys(heat.cases[0].format for heat in heats)
        return BenchResult(
            machine=machine_facts(load),
            profile=self._profile.name,
            settings={
                "messages": str(self._profile.messages),
                "seconds": f"{self._profile.seconds:g}",
                "rounds": str(self._profile.rounds),
                "seed": str(self._seed),
            },
            contestants=self._installed,
            cases=results,
            steps=dict(self._steps(list(formats), heats[0].cases[0].columns)) if self._profile.steps else {},
            day=datetime.now(UTC).date().isoformat(),
        )

    def _install(self, contestant: Contestant) -> ContestantFacts | None:
        """Install a contestant and return its facts, or None if it would duplicate another one."""
        try:
            installed = contestant.install()
        except PointlessError:
            return None
        except NotInstalledError as error:
            self._say(f"{contestant.name} is skipped: {error}")
            return ContestantFacts(missing=str(error))
        self._say(f"{contestant.name}: {installed.versions}" + (f" ({installed.way})" if installed.way else ""))
        return ContestantFacts(installed.versions, installed.way, tuple(installed.notes))

    def _heat(self, heat: Heat) -> list[CaseResult]:
        spec, name = heat.spec(self._seed), heat.cases[0].format
        stream = generate(name, spec)
        prefix = f"{self._prefix}-{self._next()}"
        try:
            self._topics.create_raw(f"{prefix}-raw", stream, spec.partitions)
            size = self._topics.feed(f"{prefix}-raw", stream, heat.total)
            raw = RawTopic(f"{prefix}-raw", heat.total, size)
            results = [CaseResult(case, size / heat.total) for case in heat.cases if case.contestant in self._installed]
            for turn in range(heat.rounds):
                for result in results if turn % 2 == 0 else reversed(results):
                    self._turn(result, spec, stream, raw, f"{prefix}-{self._next()}")
            if heat.latency:
                # Only services, because the peers' maximum rate leaves no capacity for the broker.
                for result in results:
                    if result.runs and result.case.contestant in DELIVERIES:
                        rate = result.median(lambda run: run.rate) / 2
                        self._latency(result, rate, spec, stream, f"{prefix}-{self._next()}")
        finally:
            self._topics.delete([prefix])
        return results

    def _at_rate(self, heat: Heat) -> list[CaseResult]:
        """Measure latency at the cases' rate."""
        spec = heat.spec(self._seed)
        stream = generate(heat.cases[0].format, spec)
        prefix = f"{self._prefix}-{self._next()}"
        size = stream.bytes / len(stream.messages)
        results = [CaseResult(case, size) for case in heat.cases if case.contestant in self._installed]
        try:
            for result in results:
                result.failure = self._installed[result.case.contestant].missing
                if not result.failure:
                    self._latency(result, result.case.rate, spec, stream, f"{prefix}-{self._next()}")
        finally:
            self._topics.delete([prefix])
        return results

    def _turn(self, result: CaseResult, spec: StreamSpec, stream: MessageStream, raw: RawTopic, name: str) -> None:
        """Run one measurement, unless the contestant is missing or has already failed."""
        missing = self._installed[result.case.contestant].missing
        result.failure = result.failure or missing
        if result.failure:
            return
        with self._assignment(result.case, spec, stream, raw.name, name) as assignment:
            try:
                contestant = self._contestants[result.case.contestant]
                figures = measure(contestant, assignment, raw, self._topics, self._profile.seconds)
            except ContestantError as error:
                result.failure = str(error)
                self._say(f"  {result.case.contestant} {error}")
                return
        result.runs.append(figures)
        self._say(
            f"  {result.case.contestant}: {figures.rate / 1000:.1f} k/s, {figures.cpu_us:.1f} us/message, "
            f"{figures.resident_mib:.0f} MiB, first record after {figures.startup_seconds:.1f} s"
        )

    def _latency(self, result: CaseResult, rate: float, spec: StreamSpec, stream: MessageStream, name: str) -> None:
        """Measure a contestant's latency at a rate in messages per second."""
        with self._assignment(result.case, spec, stream, f"{name}-raw", name) as assignment:
            try:
                contestant = self._contestants[result.case.contestant]
                seconds = self._profile.latency_seconds
                figures = measure_latency(contestant, assignment, self._topics, rate, seconds)
            except ContestantError as error:
                self._say(f"  {result.case.contestant}: no latency: {error}")
                if result.case.rate:
                    result.failure = str(error)
                return
        result.latency = figures
        self._say(
            f"  {result.case.contestant} at {figures.rate / 1000:.1f} k/s: "
            f"latency p50 {figures.p50_ms:.1f} ms, p99 {figures.p99_ms:.0f} ms, {figures.cpu_us:.1f} us/message, "
            f"feeder late by {figures.feeder_p99_ms:.0f} ms (p99)"
        )

    @contextmanager
    def _assignment(
        self, case: BenchCase, spec: StreamSpec, stream: MessageStream, raw: str, name: str
    ) -> Iterator[Assignment]:
        directory = Path(tempfile.mkdtemp(prefix="cdc-bench-"))
        try:
            yield Assignment(
                case.format, spec, stream, self._bootstrap, raw, f"{name}-out", name, directory, case.processes
            )
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _steps(self, formats: Sequence[str], columns: int) -> Iterator[tuple[str, StepFigures]]:
        for name in formats:
            self._say(f"{name}: single steps, {columns} columns")
            costs = step_costs(name, StreamSpec(self._profile.steps, columns, seed=self._seed), _STEP_ROUNDS)
            yield name, StepFigures(costs.decode, costs.translate, costs.encode, costs.pipeline)

    def _next(self) -> int:
        self._number += 1
        return self._number


def describe(case: BenchCase) -> str:
    """Describe a case without its contestant."""
    parts: Mapping[str, bool] = {
        f"{case.columns} columns": True,
        f"{case.tables} tables": case.tables > 1,
        f"{case.partitions} partitions": case.section == "partitions",
        f"{case.processes} processes": case.processes > 1,
        f"{case.unusual:.0%} unusual": case.unusual > 0,
        f"{case.rate:.0f} messages/s": case.rate > 0,
    }
    return ", ".join([case.format, *(text for text, said in parts.items() if said)])


def machine_facts(load_before: float) -> MachineFacts:
    """Describe the machine. Call this function after all measurements."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    return MachineFacts(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}",
        processor=processor,
        processors=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        load_before=load_before,
        load_after=os.getloadavg()[0],
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
