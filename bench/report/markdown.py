"""Write the report on a result, either as a file or as a section of a page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.measure import table
from bench.report.svg import bar_chart, line_chart
from bench.results import BenchCase, BenchResult, CaseResult, RunFigures, StepFigures

HEADING = "## Figures of the service\n"
"""The heading of the section that a report replaces. The section extends to the next heading at the same level."""
_LOOP, _SERVICE = "bare loop", "translator"

STAGES = ("fetch", "queue", "translate", "deliver")
"""The stages of the service's latency, in their order."""

_QUESTIONS: Mapping[str, tuple[str, Callable[[BenchCase], str]]] = {
    "columns": ("By columns", lambda case: f"{case.columns} columns"),
    "processes": ("By processes", lambda case: f"{case.processes}"),
    "partitions": ("By number of raw topic partitions", lambda case: f"{case.partitions}"),
    "tables": ("By tables", lambda case: f"{case.tables}"),
    "unusual": ("By the share of unusual messages", lambda case: f"{case.unusual:.0%}"),
}
"""Each section's heading, and the parameter that varies in the section. The comparison has the usual values for all
parameters.
"""


def write_report(result: BenchResult, folder: Path, page: Path | None = None) -> Path:
    """Write the pictures into a folder, and the report next to them or into its section of a page.

    Raises:
        ValueError: the page has no such section.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pictures = draw(result)
    for name, picture in pictures.items():
        (folder / name).write_text(picture, encoding="utf-8")
    to = page or folder / "report.md"
    text = render(result, pictures, "" if page is None or page.parent == folder else f"{folder.name}/")
    if page is not None:
        whole = page.read_text(encoding="utf-8")
        before, found, old = whole.partition(f"\n{HEADING}")
        if not found:
            raise ValueError(f"{page} has no section {HEADING.strip()}")
        _, following, rest = old.partition("\n## ")
        text = f"{before}{found}\n{text}{following}{rest}"
    to.write_text(text, encoding="utf-8")
    return to


def render(result: BenchResult, pictures: Mapping[str, str], prefix: str) -> str:
    """Return all sections. `prefix` is the path from the page to its pictures."""
    parts = [_machine(result)]
    parts += [_comparison(result, name, cases) for name, cases in result.of("contestants").items()]
    if "contestants.svg" in pictures:
        parts.append(f"![Processor time per message, by contestant]({prefix}contestants.svg)")
    for section in _QUESTIONS:
        parts += _question(result, section)
        if section == "columns" and "rate-by-columns.svg" in pictures:
            parts.append(f"![Rate by columns]({prefix}rate-by-columns.svg)")
    parts += _latency(result)
    parts += _steps(result)
    if "cost-by-component.svg" in pictures:
        parts.append(f"![Cost by component]({prefix}cost-by-component.svg)")
    parts.append(_versions(result))
    return "\n\n".join(parts) + "\n"


def _machine(result: BenchResult) -> str:
    m, settings = result.machine, ", ".join(f"{name} {value}" for name, value in result.settings.items())
    service = result.contestants.get(_SERVICE)
    return (
        f"These figures were measured on {result.day}, on {m.processor} with {m.processors} processors and "
        f"{m.memory_gib:.0f} GiB ({m.system}, {m.python}). The load average was {m.load_before:.1f} before and "
        f"{m.load_after:.1f} after. The settings of the profile ({result.profile}) were: {settings}. "
        f"The translation path was {service.way if service else 'not asked'}."
    )


# -- contestants


def _comparison(result: BenchResult, name: str, cases: Sequence[CaseResult]) -> str:
    head = (
        *("contestant", "messages/s", "MB/s", "us/message", "relative to loop", "memory MiB", "startup s"),
        *("startup CPU s", "latency p50 ms", "p99 ms"),
    )
    loop = next((found for found in cases if found.case.contestant == _LOOP and found.runs), None)
    rows, missing = [], []
    for found in cases:
        if not found.runs:
            missing.append(f"{found.case.contestant}: {found.failure}")
            continue
        cold = sum(not run.warm for run in found.runs)
        ratio = f"{_cpu(found) / _cpu(loop):.2f}" if loop is not None else ""
        late = found.latency
        rows.append(
            [
                found.case.contestant + (" (not warm)" if cold else ""),
                _rate(found),
                f"{found.median(lambda run: run.megabytes_per_second):.1f}",
                _spread(found, lambda run: run.cpu_us),
                ratio,
                f"{found.median(lambda run: run.resident_mib):.0f}",
                f"{found.median(lambda run: run.startup_seconds):.1f}",
                _startup_cpu(found),
                *((f"{late.p50_ms:.0f}", f"{late.p99_ms:.0f}") if late else ("", "")),
            ]
        )
    size = next((found.bytes_per_message for found in cases), 0.0)
    title = f"### {name}: {cases[0].case.columns} columns, {size:.0f} bytes per message"
    notes = "".join(f"\n\nNot measured: {_one_line(text)}." for text in missing)
    return f"{title}\n\n{table(head, rows)}{notes}"


# -- one parameter


def _question(result: BenchResult, section: str) -> Iterator[str]:
    """Yield a table with a line per format and a column per value. Each cell has the rate and the cost per message."""
    title, value = _QUESTIONS[section]
    formats = result.of(section)
    if not formats:
        return
    columns: dict[str, dict[str, CaseResult]] = {}
    for name, cases in formats.items():
        usual = _usual(result, name)
        # The comparison has the same messages, but with 12 columns.
        for found in [*([usual] if usual else []), *cases]:
            columns.setdefault(value(found.case), {})[name] = found
    order = sorted(columns, key=lambda text: float(re.findall(r"\d+", text)[0]))
    rows = [[name, *(_cell(columns[column].get(name)) for column in order)] for name in formats]
    key = "Each cell has the translator's rate (messages/s) and processor time (us/message), delivering at least once."
    yield f"### {title}\n\n{key}"
    yield table(("format", *order), rows)


def _usual(result: BenchResult, name: str) -> CaseResult | None:
    cases = result.of("contestants").get(name, ())
    return next((found for found in cases if found.case.contestant == _SERVICE and found.runs), None)


def _cell(found: CaseResult | None) -> str:
    if found is None or not found.runs:
        return "–" if found is None else f"failed: {_one_line(found.failure or '')}"
    return f"{_rate(found)}, {_cpu(found):.1f}"


# -- latency


def _latency(result: BenchResult) -> Iterator[str]:
    """Yield a table with a line per rate and contestant. Ratios compare lines with the same rate."""
    cases = [found for cases in result.of("latency").values() for found in cases]
    if not cases:
        return
    head = (
        "messages/s",
        "contestant",
        "p50 ms",
        "p99 ms",
        "maximum ms",
        "us/message",
        "relative to loop",
        "feeder p99 ms",
    )
    loops = {found.case.rate: found.latency for found in cases if found.case.contestant == _LOOP}
    rows, missing = [], []
    for found in cases:
        late, loop = found.latency, loops.get(found.case.rate)
        if late is None:
            missing.append(f"{found.case.contestant} at {found.case.rate:.0f} messages/s: {found.failure}")
            continue
        cpu = late.cpu_us or 0.0
        rows.append(
            [
                f"{late.rate:,.0f}".replace(",", " "),
                found.case.contestant,
                f"{late.p50_ms:.0f}",
                f"{late.p99_ms:.0f}",
                f"{late.most_ms:.0f}",
                f"{cpu:.1f}",
                f"{cpu / loop.cpu_us:.2f}" if loop is not None and loop.cpu_us else "",
                "" if late.feeder_p99_ms is None else f"{late.feeder_p99_ms:.0f}",
            ]
        )
    notes = "".join(f"\n\nNot measured: {_one_line(text)}." for text in missing)
    yield (
        "### Latency at fixed rates\n\n"
        "Canal messages, from the raw message to a `read_committed` consumer, and processor time per message at that "
        "rate. The last column shows how late the feeder was. If it is not close to zero, ignore the line: it says "
        "nothing about the translator."
    )
    yield table(head, rows) + notes
    yield from _stages(cases)


def _stages(cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield a table with a line per rate and service, and a column per stage."""
    rows = [
        [
            f"{late.rate:,.0f}".replace(",", " "),
            found.case.contestant,
            *(f"{stage.p50_ms:.1f}, {stage.p99_ms:.1f}" for stage in map(late.stages.__getitem__, STAGES)),
        ]
        for found in cases
        if (late := found.latency) is not None and late.stages
    ]
    if not rows:
        return
    yield (
        "### Latency by stage\n\n"
        "The service's own measurement at the same rates. Each cell has p50 and p99 in milliseconds. Each batch counts "
        "once, and percentiles are interpolated within the histogram's buckets. The lowest bucket ends at 1 ms."
    )
    yield table(("messages/s", "contestant", *STAGES), rows)


# -- steps


def _steps(result: BenchResult) -> Iterator[str]:
    if not result.steps:
        return
    head = ("format", "decode", "build", "encode", "whole pipeline", "whole service")
    rows = []
    for name, steps in result.steps.items():
        figures = [*python_steps(steps).values(), steps.pipeline]
        whole = _usual(result, name)
        rows.append([name, *(f"{figure:.1f}" for figure in figures), f"{_cpu(whole):.1f}" if whole else ""])
    yield (
        "### Where the time goes\n\n"
        "Microseconds of processor time per message, in one process with delivery in memory. The last column is from "
        "the tables above and includes Faust and the Kafka clients. The steps are those of the plain path. Each step "
        "is the difference between two measurements and has the errors of both. The pipeline uses the translator's "
        "path."
    )
    yield table(head, rows)


def python_steps(steps: StepFigures) -> Mapping[str, float]:
    """Return the cost of each step on the plain path."""
    return {
        "decode": steps.decode,
        "build": steps.translate - steps.decode,
        "encode": steps.encode - steps.translate,
    }


def components(result: BenchResult) -> Mapping[str, Mapping[str, float]]:
    """Return microseconds per message, by format and component. The components add up to the cost of the service.

    Without a native path, the pipeline component is the cost of the pipeline minus the cost of the steps. The Kafka and
    Faust component is the cost of the service minus the cost of the pipeline.
    """
    service = result.contestants.get(_SERVICE)
    native = service is not None and service.way.startswith("native")
    found = {}
    for name, steps in result.steps.items():
        whole = _usual(result, name)
        more = {"Kafka, Faust": _cpu(whole) - steps.pipeline if whole else 0.0}
        if native:
            found[name] = {"pipeline": steps.pipeline, **more}
        else:
            found[name] = {**python_steps(steps), "pipeline": steps.pipeline - steps.encode, **more}
    return found


def _versions(result: BenchResult) -> str:
    lines = []
    for name, facts in result.contestants.items():
        told = [f"path: {facts.way}"] if facts.way else []
        said = (
            f"not available: {_one_line(facts.missing)}"
            if facts.missing
            else "; ".join((facts.versions, *told, *facts.notes))
        )
        lines.append(f"- {name}: {said}")
    return "### Versions\n\n" + "\n".join(lines)


# -- pictures


def draw(result: BenchResult) -> dict[str, str]:
    """Return the pictures that have figures, keyed by file name."""
    pictures = {}
    swept = {
        name: sorted((found.case.columns, found.median(lambda run: run.rate)) for found in cases if found.runs)
        for name, cases in result.of("columns").items()
    }
    if any(swept.values()):
        lines = {name: points for name, points in swept.items() if points}
        pictures["rate-by-columns.svg"] = line_chart("Rate by columns", "columns", "messages/s", lines)
    if result.steps:
        pictures["cost-by-component.svg"] = bar_chart("Cost by component", "us/message", components(result))
    compared = {
        f"{name}: {found.case.contestant}" if len(result.of("contestants")) > 1 else found.case.contestant: {
            "cpu": _cpu(found)
        }
        for name, cases in result.of("contestants").items()
        for found in cases
        if found.runs
    }
    if compared:
        pictures["contestants.svg"] = bar_chart("Processor time by contestant", "us/message", compared)
    return pictures


# -- figures


def _cpu(found: CaseResult) -> float:
    return found.median(lambda run: run.cpu_us)


def _startup_cpu(found: CaseResult) -> str:
    known = [run.startup_cpu_seconds for run in found.runs if run.startup_cpu_seconds is not None]
    return f"{statistics.median(known):.1f}" if known else ""


def _rate(found: CaseResult) -> str:
    return f"{found.median(lambda run: run.rate):,.0f}".replace(",", " ")


def _spread(found: CaseResult, of: Callable[[RunFigures], float]) -> str:
    """Return the median. For several runs, add the minimum and the maximum."""
    values = sorted(map(of, found.runs))
    median = f"{found.median(of):.1f}"
    return f"{median} ({values[0]:.1f}–{values[-1]:.1f})" if len(values) > 1 else median


def _one_line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:200].rstrip(".")
