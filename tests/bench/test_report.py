"""The report of a recorded result shows every figure in its place, and the reason for each missing one."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bench.report.markdown import HEADING, components, draw, render, write_report
from bench.report.svg import bar_chart, line_chart
from bench.results import (
    BenchCase,
    BenchResult,
    CaseResult,
    ContestantFacts,
    LatencyFigures,
    MachineFacts,
    RunFigures,
    StageFigures,
    StepFigures,
    merged,
)

RECORDED = Path(__file__).with_name("recorded_result.json")


@pytest.fixture
def recorded() -> BenchResult:
    """A result as `make bench` wrote it, with rounded figures."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=BenchResult)


def _rows(text: str, heading: str) -> Iterator[list[str]]:
    """Return the cells of the table under a heading."""
    part = text.partition(f"### {heading}")[2].partition("### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_contestants(recorded: BenchResult) -> None:
    """The table has the median and range of the runs, the ratio to the format's loop, and latency if measured."""
    rows = {row[0]: row[1:] for row in _rows(render(recorded, {}, ""), "canal: 12 columns, 1110 bytes per message")}
    assert rows == {
        "bare loop": ["80 000", "88.8", "12.0 (11.5–12.5)", "1.00", "100", "1.0", "0.8", "", ""],
        "translator": ["15 000", "16.6", "72.0 (70.0–74.0)", "6.00", "130", "4.0", "3.0", "40", "90"],
    }


def test_what_was_not_measured_says_why(recorded: BenchResult) -> None:
    """A contestant that cannot be installed has a reason instead of an empty line."""
    text = render(recorded, {}, "")
    assert "Not measured: Flink SQL: javac is missing." in text
    assert "- Flink SQL: not available: javac is missing" in text


def test_one_parameter_at_a_time(recorded: BenchResult) -> None:
    """The comparison's figures appear among those of the question, in order of the values."""
    text = render(recorded, {}, "")
    assert "| format | 5 columns | 12 columns | 60 columns |" in text
    assert [["canal", "22 000, 45.0", "15 000, 72.0", "5 000, 200.0"]] == [*_rows(text, "By columns")]
    assert [["canal", "15 000, 72.0", "failed: ended with exit code 1"]] == [*_rows(text, "By processes")]


def test_latency_at_fixed_rates(recorded: BenchResult) -> None:
    """Each line compares its processor time with the loop at the same rate."""
    stages = {
        "deliver": StageFigures(7.74, 20.0),
        "fetch": StageFigures(7.0, 22.5),
        "queue": StageFigures(2.7, 9.0),
        "translate": StageFigures(0.5, 3.0),
    }
    figures = {
        "translator": LatencyFigures(1000.0, 5000, 12.3, 20.6, 41.0, 150.0, 2.4, stages),
        "bare loop": LatencyFigures(1000.0, 5000, 70.0, 110.0, 120.0, 100.0, 2.4),
    }
    recorded.cases += [
        CaseResult(BenchCase("latency", "canal", name, rate=1000.0), 1110.0, latency=late)
        for name, late in figures.items()
    ]
    failed = BenchCase("latency", "canal", "bare loop", rate=30000.0)
    recorded.cases.append(CaseResult(failed, 1110.0, failure="exited with code 1: no memory"))
    text = render(recorded, {}, "")
    assert [
        ["1 000", "translator", "12", "21", "41", "150.0", "1.50", "2"],
        ["1 000", "bare loop", "70", "110", "120", "100.0", "1.00", "2"],
    ] == [*_rows(text, "Latency at fixed rates")]
    assert "| messages/s | contestant | fetch | queue | translate | deliver |" in text
    assert [["1 000", "translator", "7.0, 22.5", "2.7, 9.0", "0.5, 3.0", "7.7, 20.0"]] == [
        *_rows(text, "Latency by stage")
    ]
    assert "Not measured: bare loop at 30000 messages/s: exited with code 1: no memory." in text


def test_components_add_up_to_the_service(recorded: BenchResult) -> None:
    """The difference between service and pipeline is attributed to Kafka and Faust."""
    (parts,) = components(recorded).values()
    assert parts == {"decode": 20.0, "build": 10.0, "encode": 5.0, "pipeline": 7.0, "Kafka, Faust": 30.0}
    assert [["canal", "20.0", "10.0", "5.0", "42.0", "72.0"]] == [
        *_rows(render(recorded, {}, ""), "Where the time goes")
    ]


def test_components_of_the_native_path(recorded: BenchResult) -> None:
    """The native path's components do not include the steps in Python."""
    recorded.contestants["translator"] = ContestantFacts("cdc-translator 0.1.0", "native 0.1.0")
    (parts,) = components(recorded).values()
    assert parts == {"pipeline": 42.0, "Kafka, Faust": 30.0}
    assert "path: native 0.1.0" in render(recorded, {}, "")


def test_machine_and_way(recorded: BenchResult) -> None:
    """The report states the machine, the load, the settings and the path of its figures."""
    text = render(recorded, {}, "")
    for said in ("A processor with 2 processors and 24 GiB", "0.5 before and 3.0 after", "seed 7", "path was python"):
        assert said in text


def test_pictures_are_well_formed_and_named_by_the_page(recorded: BenchResult, tmp_path: Path) -> None:
    """Each picture is XML with one bar or line per figure, and the page shows each picture."""
    report = write_report(recorded, tmp_path).read_text()
    pictures = draw(recorded)
    assert {"rate-by-columns.svg", "cost-by-component.svg", "contestants.svg"} == pictures.keys()
    for name, picture in pictures.items():
        assert (tmp_path / name).read_text() == picture
        ElementTree.fromstring(picture)
        assert f"]({name})" in report
    assert 1 == pictures["rate-by-columns.svg"].count("<polyline")
    assert 2 == pictures["rate-by-columns.svg"].count("<circle")


def test_a_page_keeps_its_words(recorded: BenchResult, tmp_path: Path) -> None:
    """The report rewrites only the section of the figures, and nothing if the page lacks it."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{HEADING}\nold figures\n\n### old\n\n## After\n\nwords\n")
    for _ in range(2):
        write_report(recorded, tmp_path / "pictures", page=page)
        text = page.read_text()
        assert text.startswith(f"before\n\n{HEADING}\nThese figures were measured on 2026-01-05")
        assert text.endswith("\n\n## After\n\nwords\n")
        assert 1 == text.count("### canal: 12 columns")
        assert "old" not in text
        assert "](pictures/contestants.svg)" in text
    page.write_text("no figures\n")
    with pytest.raises(ValueError, match="no section ## Figures"):
        write_report(recorded, tmp_path / "pictures", page=page)
    assert "no figures\n" == page.read_text()


def test_one_report_of_several_results(recorded: BenchResult) -> None:
    """Formats measured separately share one page. A case that appears in both results is rejected."""
    other = msgspec.structs.replace(
        recorded,
        profile="short",
        cases=[CaseResult(BenchCase("contestants", "shareplex", "translator"), 290.0, recorded.cases[1].runs)],
        steps={"shareplex": StepFigures(1.0, 2.0, 3.0, 4.0)},
    )
    text = render(merged([recorded, other]), {}, "")
    assert "profile (full and short) were: messages 240000, rounds 2, seed 7." in text
    assert "### canal: 12 columns, 1110 bytes" in text
    assert "### shareplex: 12 columns, 290 bytes" in text
    assert ["canal", "shareplex"] == [row[0] for row in _rows(text, "Where the time goes")]
    with pytest.raises(ValueError, match="in common"):
        merged([recorded, recorded])


def test_bars_are_as_long_as_their_parts() -> None:
    """A negative part, which two measurements can produce, does not shorten the bar."""
    root = ElementTree.fromstring(bar_chart("t", "us", {"a": {"x": 30.0, "y": 10.0}, "b": {"x": -5.0, "y": 20.0}}))
    bars = [float(node.attrib["width"]) for node in root if node.tag.endswith("rect") and node.get("height") == "22"]
    long, short, none, half = bars
    assert 0 == none
    assert short == pytest.approx(long / 3, abs=0.1)
    assert half == pytest.approx(long * 2 / 3, abs=0.1)


def test_lines_rise_with_their_values() -> None:
    """Higher values are drawn higher, and equal values level."""
    root = ElementTree.fromstring(line_chart("t", "x", "y", {"a": [(5, 100), (60, 1000)], "b": [(5, 100), (60, 50)]}))
    circles = [node for node in root if node.tag.endswith("circle")]
    first, up, again, down = (float(node.attrib["cy"]) for node in circles)
    assert up < first == again < down


def _run(rate: float, cpu: float, **more: float) -> RunFigures:
    figures = {"resident_mib": 130.0, "startup_seconds": 4.0, "startup_cpu_seconds": 3.0, **more}
    return RunFigures(1000, 1.0, rate, rate * 1110 / 1e6, cpu, **figures)


def _record() -> BenchResult:
    """Rewrite the recorded result. Run `python -m tests.bench.test_report`."""
    usual = BenchCase("contestants", "canal", "translator")
    small = {"resident_mib": 100.0, "startup_seconds": 1.0, "startup_cpu_seconds": 0.8}
    loop = [_run(81_000, 11.5, **small), _run(79_000, 12.5, **small)]
    service = [_run(15_500, 70.0), _run(14_500, 74.0)]
    late = LatencyFigures(7_500, 75_000, 40.0, 90.0, 120.0)
    others = {5: _run(22_000, 45.0), 60: _run(5_000, 200.0)}
    return BenchResult(
        machine=MachineFacts("CPython 3.11.7", "Linux 6.1, x86_64", "A processor", 2, 24.0, 0.5, 3.0),
        profile="full",
        settings={"messages": "240000", "rounds": "2", "seed": "7"},
        contestants={
            "bare loop": ContestantFacts("orjson 3.13.0"),
            "translator": ContestantFacts("cdc-translator 0.1.0", "python"),
            "Flink SQL": ContestantFacts(missing="javac is missing"),
        },
        cases=[
            CaseResult(BenchCase("contestants", "canal", "bare loop"), 1110.0, loop),
            CaseResult(usual, 1110.0, service, late),
            CaseResult(BenchCase("contestants", "canal", "Flink SQL"), 1110.0, failure="javac is missing"),
            *(
                CaseResult(BenchCase("columns", "canal", "translator", columns), 500.0, [run])
                for columns, run in others.items()
            ),
            CaseResult(BenchCase("processes", "canal", "translator", processes=2), failure="ended with exit code 1."),
        ],
        steps={"canal": StepFigures(20.0, 30.0, 35.0, 42.0)},
        day="2026-01-05",
    )


if __name__ == "__main__":
    RECORDED.write_bytes(msgspec.json.format(msgspec.json.encode(_record())) + b"\n")
