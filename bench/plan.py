"""The measurement plan for each profile. In a heat, contestants take turns on one raw topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.contestants import CONTESTANTS
from bench.generators import WRITERS
from bench.generators.history import StreamSpec
from bench.results import BenchCase

SERVICE = "translator"
DELIVERIES = (SERVICE, "translator, exactly once")
LOOP = "bare loop"
_SHORT = (*DELIVERIES, "translator, without its native path", LOOP)
FORMATS = ("canal", "shareplex", "dts_avro", "qlik_json", "qlik_avro")
"""The formats for all measurements. `canal_dts` is used only for its continuity check."""
COLUMNS = 12
SWEPT_COLUMNS = (5, 20, 60, 200)

_LEAST_MESSAGES = 20_000
_CELLS = 240_000
"""Total size of the distinct messages in a topic. They are repeated, because wide messages are slow to generate.
"""
RATES = (1_000, 10_000, 30_000)
"""The fixed rates for latency measurements, in messages per second."""


@dataclass(frozen=True)
class BenchProfile:
    """The size of a run.

    Args:
        messages: number of messages in a raw topic, with the usual number of columns.
        seconds: maximum duration of a measurement.
        latency_seconds: how long a latency measurement feeds messages, or 0 to leave it out.
        rounds: number of rounds in a heat that compares contestants. Other heats have one round less.
        steps: the number of messages for measuring the cost of each step, or 0 to leave this out.
    """

    name: str
    messages: int
    seconds: float
    latency_seconds: float
    rounds: int
    steps: int


FULL = BenchProfile("full", 240_000, 10.0, 10.0, 3, 6_000)
SHORT = BenchProfile("short", 100_000, 5.0, 5.0, 2, 3_000)
RATIOS = BenchProfile("ratios", 240_000, 10.0, 10.0, 2, 0)
SMALLEST = BenchProfile("smallest", 1_500, 2.0, 0.0, 1, 0)
"""A profile for tests, which only check that the benchmark runs."""


class Heat(NamedTuple):
    """Cases that read the same raw topic in turns. If `latency` is set, the latency of the services is measured as
    well.

    In the section `latency`, each case has its own raw topic, which is filled at the rate of the case.
    """

    cases: Sequence[BenchCase]
    total: int
    """Messages in the raw topic."""
    rounds: int
    latency: bool = False

    def spec(self, seed: int) -> StreamSpec:
        """The topic's distinct messages."""
        case = self.cases[0]
        distinct = max(2_000, min(20_000, _CELLS // case.columns))
        return StreamSpec(
            # Repeated rows prove nothing about the continuity check, which is measured with this format.
            messages=self.total if case.format == "canal_dts" else min(self.total or distinct, distinct),
            columns=case.columns,
            tables=case.tables,
            unusual=case.unusual,
            partitions=case.partitions,
            seed=seed,
        )


def heats(profile: BenchProfile, formats: Sequence[str], columns: int | None = None) -> list[Heat]:
    """Return all heats in a profile.

    Args:
        formats: names from `WRITERS`.
        columns: number of columns in the comparison. If it is set, all other measurements are skipped. Wide messages
            would also exceed what the broker accepts at the highest fixed rate.
    """
    compared = [_comparison(profile, name, columns or COLUMNS) for name in formats]
    if columns is not None:
        return compared
    if profile.latency_seconds and "canal" in formats:
        compared += [_fixed_rate(rate) for rate in RATES]
    if profile.name != FULL.name:
        return compared
    swept = (heat for name in formats if name in FORMATS for heat in _sweeps(profile, name))
    return [*compared, *swept]


def ratio_heats(profile: BenchProfile) -> list[Heat]:
    """Return the heats for the service's ratios to the bare loop, and to itself with usual messages."""
    usual = BenchCase("contestants", "canal", SERVICE)
    services = [*DELIVERIES, *(name for name in CONTESTANTS if "projection" in name)]
    readers = {"canal": services, "canal_dts": [SERVICE], "shareplex": [SERVICE], "qlik_json": [SERVICE]}
    return [
        *(
            Heat(
                [replace_case(usual, format=name, contestant=one) for one in (*ones, LOOP)],
                profile.messages,
                profile.rounds,
            )
            for name, ones in readers.items()
        ),
        _alone(profile, replace_case(usual, section="partitions", partitions=64)),
        _alone(profile, replace_case(usual, section="tables", tables=2_000)),
        _alone(profile, replace_case(usual, section="unusual", unusual=0.05)),
        *map(_fixed_rate, RATES),
    ]


def _comparison(profile: BenchProfile, name: str, columns: int) -> Heat:
    """Return the comparison: all contestants that read the format, or the loop and both delivery modes in the short
    profile.
    """
    readers = [one.name for one in CONTESTANTS.values() if one.formats is None or name in one.formats]
    if profile.name != FULL.name:
        readers = [reader for reader in readers if reader in _SHORT]
    elif name != "canal":
        readers = [reader for reader in readers if "projection" not in reader]
    cases = [BenchCase("contestants", name, reader, columns) for reader in readers]
    # Peers in Java need a longer warm-up: as many messages as other contestants process in the whole measurement.
    total = _total(profile, columns) * (2 if profile.name == FULL.name and name == "canal" else 1)
    return Heat(cases, total, profile.rounds, latency=profile.latency_seconds > 0)


def _fixed_rate(rate: float) -> Heat:
    """Return the measurements at a fixed rate. All contestants run at the same rate, so their figures can be
    compared.
    """
    readers = (*DELIVERIES, LOOP)
    return Heat([BenchCase("latency", "canal", reader, rate=rate) for reader in readers], 0, 0)


def _sweeps(profile: BenchProfile, name: str) -> Iterator[Heat]:
    """Return the heats that vary one parameter at a time. The comparison already has the usual values."""
    usual = BenchCase("", name, SERVICE)
    for columns in SWEPT_COLUMNS:
        yield _alone(profile, replace_case(usual, section="columns", columns=columns))
    yield _alone(profile, replace_case(usual, section="processes", processes=2))
    yield _alone(profile, replace_case(usual, section="partitions", partitions=64))
    yield _alone(profile, replace_case(usual, section="tables", tables=2_000))
    for unusual in (0.05, 0.5):
        yield _alone(profile, replace_case(usual, section="unusual", unusual=unusual))


def replace_case(case: BenchCase, **changes: str | int | float) -> BenchCase:
    """Return a case with different values."""
    names: Mapping[str, str | int | float] = {name: getattr(case, name) for name in case.__struct_fields__}
    return BenchCase(**{**names, **changes})  # type: ignore[arg-type]


def _alone(profile: BenchProfile, case: BenchCase) -> Heat:
    return Heat([case], _total(profile, case.columns) * case.processes, max(1, profile.rounds - 1))


def _total(profile: BenchProfile, columns: int) -> int:
    """Return the number of messages for a number of columns. Within limits, the total size of the messages is about the
    same for any number of columns.
    """
    return min(profile.messages, max(_LEAST_MESSAGES, profile.messages * COLUMNS // columns))


def formats_of(names: Sequence[str]) -> list[str]:
    """Return the formats with names that equal or begin with the given names, or all formats if no names are given.

    Raises:
        ValueError: no format has that name.
    """
    if not names:
        return list(WRITERS)
    wanted: set[str] = set()
    for name in names:
        found = {name} & WRITERS.keys() or {known for known in WRITERS if known.startswith(name)}
        if not found:
            raise ValueError(f"no format {name}; available formats: {', '.join(WRITERS)}")
        wanted |= found
    return [known for known in WRITERS if known in wanted]
