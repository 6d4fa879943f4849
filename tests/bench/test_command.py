"""`python -m bench` rejects bad arguments before it starts anything, and can report an existing result."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from bench import __main__ as command
from bench.report.markdown import HEADING
from bench.results import BenchCase, BenchResult, CaseResult

RECORDED = Path(__file__).with_name("recorded_result.json")


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
    return command.main()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "oracle"), "no format oracle"),
        (("--columns", "1"), "at least 2"),
        (("--rounds", "0"), "at least 1"),
        (("--ratios", "--only", "canal"), "cannot be combined"),
        (("--ratios", "--columns", "5"), "cannot be combined"),
        (("--ratios", "--short"), "cannot be combined"),
    ],
)
def test_refused(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2 with a reason, and no broker starts."""
    monkeypatch.setattr(command, "Broker", None)
    with pytest.raises(SystemExit) as ended:
        _main(monkeypatch, *arguments)
    assert 2 == ended.value.code
    assert said in capsys.readouterr().err


def test_a_report_of_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder gets the report, the result and the pictures, and the page its figures. Failures set the exit code."""
    page = tmp_path / "page.md"
    page.write_text(f"words\n\n{HEADING}\n")
    code = _main(monkeypatch, "--from", RECORDED, "--out", tmp_path / "out", "--page", page)
    assert 1 == code  # two processes ended; a missing Flink is not a failure
    assert {"report.md", "result.json"} < {path.name for path in (tmp_path / "out").iterdir()}
    assert "### canal: 12 columns" in page.read_text()
    assert (tmp_path / "benchmarks" / "contestants.svg").exists()
    kept = (tmp_path / "out" / "result.json").read_bytes()
    # Older results lack fields that were added later.
    recorded, written = (msgspec.json.decode(result, type=BenchResult) for result in (RECORDED.read_bytes(), kept))
    assert recorded == written


def test_all_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing contestant does not fail the run."""
    result = msgspec.json.decode(RECORDED.read_bytes(), type=BenchResult)
    result.cases = [one for one in result.cases if one.runs or one.case.contestant == "Flink SQL"]
    assert (
        CaseResult(BenchCase("contestants", "canal", "Flink SQL"), 1110.0, failure="javac is missing") in result.cases
    )
    (tmp_path / "good.json").write_bytes(msgspec.json.encode(result))
    assert 0 == _main(monkeypatch, "--from", tmp_path / "good.json", "--out", tmp_path / "out")
