"""The parts in which the tests run contain every test once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev.run_tests import APART, FAULTS, NO_TESTS, PARTS, QUICK, ROOT, Runner, main, parts, result


def _files(arguments: tuple[str, ...]) -> list[Path]:
    """Return the test files that pytest finds with these arguments."""
    ignored = [ROOT / argument.removeprefix("--ignore=") for argument in arguments if argument.startswith("--ignore=")]
    folders = [ROOT / argument for argument in arguments if argument.startswith("tests")]
    found = [path for folder in folders for path in folder.rglob("test_*.py")]
    return [path for path in found if not any(path.is_relative_to(folder) for folder in ignored)]


@pytest.mark.parametrize("option", ["", "--quick"])
def test_every_file_is_in_one_part(option: str) -> None:
    """Moving folders neither drops a file nor runs it twice."""
    found = sorted(path for part in parts(option) for path in _files(part))
    apart = {path for folder in APART for path in (ROOT / folder).rglob("test_*.py")}
    assert apart
    assert sorted(set((ROOT / "tests").rglob("test_*.py")) - apart) == found


def test_every_folder_is_there() -> None:
    """Every folder exists. pytest would report a missing one only minutes later."""
    assert [] == [folder for part in (*PARTS, *QUICK, *FAULTS) for folder in part if not (ROOT / folder).is_dir()]


def test_every_fault_is_in_a_part() -> None:
    """Every test with the mark is in one of those folders. Elsewhere it would not run."""
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.faults" in path.read_text()]
    looked_at = [path for part in parts("--faults") for path in _files(part)]
    assert {*marked} - {Path(__file__)} <= {*looked_at}
    assert len({*looked_at}) == len(looked_at), "and none twice"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0], 0),
        ([0, NO_TESTS], 0),
        ([NO_TESTS, NO_TESTS], NO_TESTS),
        ([0, 1, NO_TESTS], 1),
        ([0, -9], -9),
    ],
)
def test_result(codes: list[int], expected: int) -> None:
    """One failing part fails the run. A part without tests does not."""
    assert expected == result(codes)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "(not faults)"),
        (["--quick"], "(not faults and not integration)"),
        (["-m", "integration"], "(not faults) and (integration)"),
        (["-x", "-mintegration or slow", "-q"], "(not faults) and (integration or slow)"),
        (["--faults", "-m", "integration"], "(faults) and (integration)"),
    ],
)
def test_marks(arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark on the command line selects among the tests of the option, and never adds to them."""
    ran: list[list[str]] = []
    monkeypatch.setattr(Runner, "run", lambda runner, part: ran.append([*part, *runner._arguments]) or 0)
    assert 0 == main(arguments)
    assert ran
    for command in ran:
        assert [expected] == [command[at + 1] for at, argument in enumerate(command) if argument == "-m"]
        assert not [argument for argument in command if argument.startswith("-m") and argument != "-m"]


def test_two_parts_for_real(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Arguments reach every part. The run passes if the only part with a test passes."""
    monkeypatch.setattr("dev.run_tests.parts", lambda option, marks: [("tests/dev",), ("tests/repository",)])
    assert 0 == main(["-q", "-k", "test_every_folder_is_there"])
    said = capfdbinary.readouterr().out.decode()
    assert 1 == said.count("1 passed")
    told = [line.split(": ") for line in said.splitlines() if line.startswith("tests: ")]
    assert ["all", "tests/dev", "tests/repository"] == sorted(what for _, what, _ in told)
    took = {
        what: int(re.fullmatch(r"\d+ s, (\d+) s of processors(, exit code \d)?", text)[1]) for _, what, text in told
    }  # type: ignore[index]
    assert 0 < took["tests/dev"] <= took["all"]
