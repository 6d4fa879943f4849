"""Store a benchmark result as JSON: the machine, the settings, and the figures of each run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field


class BenchCase(Struct, frozen=True):
    """What is measured: one contestant with one kind of message."""

    section: str
    """The case's section: `contestants`, `columns`, `processes`, `partitions`, `tables`, `unusual`
    or `latency`.
    """
    format: str
    contestant: str
    columns: int = 12
    tables: int = 1
    partitions: int = 4
    processes: int = 1
    unusual: float = 0.0
    rate: float = 0.0
    """Messages per second in the section `latency`; 0 in all other sections."""


class RunFigures(Struct, frozen=True):
    """One measurement for a case."""

    messages: int
    seconds: float
    rate: float
    """Messages read per second."""
    megabytes_per_second: float
    """Megabytes of values read per second."""
    cpu_us: float
    """Microseconds of CPU time per message, for all threads in the contestant's processes."""
    resident_mib: float
    """Memory of all processes together at the end."""
    startup_seconds: float
    """Time from the start of the process to the first record in its output."""
    startup_cpu_seconds: float | None = None
    """CPU time until the first record. None in older results."""
    warm: bool = True
    """False if there were so few messages that the startup time had to be included."""


class StageFigures(Struct, frozen=True):
    """How long the batches of a measurement were in a stage. Each batch counts once."""

    p50_ms: float
    p99_ms: float


class LatencyFigures(Struct, frozen=True):
    """Time from sending a raw message until a `read_committed` consumer receives its record."""

    rate: float
    """Messages fed per second. In the comparison, this is half of the contestant's rate."""
    messages: int
    p50_ms: float
    p99_ms: float
    most_ms: float
    cpu_us: float | None = None
    """Microseconds of CPU time per message. None in older results."""
    feeder_p99_ms: float | None = None
    """How late messages were sent compared with a constant rate (99th percentile). None in older results."""
    stages: dict[str, StageFigures] = field(default_factory=dict)
    """The service's own measurement, by stage. Empty for peers and in older results."""


class CaseResult(Struct):
    """A case with its runs. A case that could not be measured has no runs."""

    case: BenchCase
    bytes_per_message: float = 0.0
    runs: list[RunFigures] = field(default_factory=list)
    latency: LatencyFigures | None = None
    failure: str | None = None

    def median(self, of: Callable[[RunFigures], float]) -> float:
        """Return the median over the runs."""
        return statistics.median(map(of, self.runs))


class MachineFacts(Struct, frozen=True):
    """The machine on which the measurements ran, without its name or any paths."""

    python: str
    system: str
    processor: str
    processors: int
    memory_gib: float
    load_before: float
    load_after: float


class ContestantFacts(Struct, frozen=True):
    """The versions and the translation path of a contestant, or the reason why it is missing."""

    versions: str = ""
    way: str = ""
    notes: tuple[str, ...] = ()
    missing: str | None = None


class StepFigures(Struct, frozen=True):
    """Microseconds per message in one process, with delivery in memory. Each figure includes the ones before it."""

    decode: float
    translate: float
    encode: float
    pipeline: float


class BenchResult(Struct):
    """All results from a run of `make bench`."""

    machine: MachineFacts
    profile: str
    settings: dict[str, str]
    contestants: dict[str, ContestantFacts]
    cases: list[CaseResult]
    steps: dict[str, StepFigures] = field(default_factory=dict)
    """Step costs by format."""
    day: str = ""

    def find(self, case: BenchCase) -> CaseResult | None:
        """Return the result for a measured case."""
        return next((found for found in self.cases if found.case == case and found.runs), None)

    def of(self, section: str) -> Mapping[str, Sequence[CaseResult]]:
        """Return the cases in a section by format, including cases without figures."""
        formats = dict.fromkeys(result.case.format for result in self.cases if result.case.section == section)
        return {
            name: [result for result in self.cases if (result.case.section, result.case.format) == (section, name)]
            for name in formats
        }


def merged(results: Sequence[BenchResult]) -> BenchResult:
    """Merge several results that have no cases in common. The machine and the day come from the first result.

    Raises:
        ValueError: two results have the same case, so the report would mix two runs.
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
