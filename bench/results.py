"""What a benchmark finds, as it is kept in JSON: the machine, the settings, and the figures of each run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field


class BenchCase(Struct, frozen=True):
    """The thing that is measured: one contestant with messages of one kind."""

    section: str
    """The question that it belongs to: `contestants`, `columns`, `processes`, `partitions`, `tables`, `unusual`."""
    format: str
    contestant: str
    columns: int = 12
    tables: int = 1
    partitions: int = 4
    processes: int = 1
    unusual: float = 0.0


class RunFigures(Struct, frozen=True):
    """One measurement of a case."""

    messages: int
    seconds: float
    rate: float
    """Messages a second, read."""
    megabytes_per_second: float
    """Of the values that were read, a million bytes each."""
    cpu_us: float
    """Microseconds of processor time a message, of all threads of the contestant's processes."""
    resident_mib: float
    """At the end, of all processes together."""
    startup_seconds: float
    """From the start of the process to the first record in its output."""
    startup_cpu_seconds: float | None = None
    """Processor time until then; None in results from before it was kept."""
    warm: bool = True
    """False: there were so few messages that all count, and the start with them."""


class LatencyFigures(Struct, frozen=True):
    """From the time of a raw message to its record at a reader of committed records."""

    rate: float
    """Messages a second that were fed: half of what the contestant took."""
    messages: int
    p50_ms: float
    p99_ms: float
    most_ms: float


class CaseResult(Struct):
    """A case with its runs; without any when it could not be measured."""

    case: BenchCase
    bytes_per_message: float = 0.0
    runs: list[RunFigures] = field(default_factory=list)
    latency: LatencyFigures | None = None
    failure: str | None = None

    def median(self, of: Callable[[RunFigures], float]) -> float:
        """The median over the runs."""
        return statistics.median(map(of, self.runs))


class MachineFacts(Struct, frozen=True):
    """The machine that figures depend on: never a path or a name of it."""

    python: str
    system: str
    processor: str
    processors: int
    memory_gib: float
    load_before: float
    load_after: float


class ContestantFacts(Struct, frozen=True):
    """Versions of a contestant, and the way that it takes; or the reason why it is not there."""

    versions: str = ""
    way: str = ""
    notes: tuple[str, ...] = ()
    missing: str | None = None


class StepFigures(Struct, frozen=True):
    """Microseconds a message in one process, with delivery in memory: each figure holds those before it."""

    decode: float
    translate: float
    encode: float
    pipeline: float


class BenchResult(Struct):
    """All of a run of `make bench`."""

    machine: MachineFacts
    profile: str
    settings: dict[str, str]
    contestants: dict[str, ContestantFacts]
    cases: list[CaseResult]
    steps: dict[str, StepFigures] = field(default_factory=dict)
    """By format."""
    day: str = ""

    def find(self, case: BenchCase) -> CaseResult | None:
        """The result of a case that was measured."""
        return next((found for found in self.cases if found.case == case and found.runs), None)

    def of(self, section: str) -> Mapping[str, Sequence[CaseResult]]:
        """The cases of a section by format, those without a figure too."""
        formats = dict.fromkeys(result.case.format for result in self.cases if result.case.section == section)
        return {
            name: [result for result in self.cases if (result.case.section, result.case.format) == (section, name)]
            for name in formats
        }


def merged(results: Sequence[BenchResult]) -> BenchResult:
    """One result of several, which have no case in common; machine and day are those of the first.

    Raises:
        ValueError: two have figures of one case, which would stand beside each other as if of one run.
    """
    first = results[0]
    cases = [found for result in results for found in result.cases]
    if len({found.case for found in cases}) < len(cases):
        raise ValueError("these results have cases in common")
    settings = {
        name: " and ".join(dict.fromkeys(result.settings.get(name, "") for result in results))
        for name in first.settings
    }
    return BenchResult(
        machine=first.machine,
        profile=" and ".join(dict.fromkeys(result.profile for result in results)),
        settings=settings,
        contestants={name: facts for result in results for name, facts in result.contestants.items()},
        cases=cases,
        steps={name: steps for result in results for name, steps in result.steps.items()},
        day=first.day,
    )
