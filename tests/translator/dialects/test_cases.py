"""In every case folder of every dialect, the message gives the result in its expected.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.translator.dialects.case import CASES, EXPECTED, find_cases, outcome_of
from translator.dialects import DIALECTS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("case", find_cases(), ids=lambda path: path.relative_to(CASES).as_posix())
def test_case(case: Path) -> None:
    """The outcome of the message is the expected one."""
    expected = case / EXPECTED
    if not expected.exists():
        command = f"python -m tests.translator.dialects.write_expected {case.relative_to(ROOT)}"
        pytest.fail(f"{EXPECTED} is missing; write it, then read it: {command}")
    assert json.loads(expected.read_bytes()) == outcome_of(case)


@pytest.mark.parametrize("case", find_cases(), ids=lambda path: path.relative_to(CASES).as_posix())
def test_case_says_where_it_comes_from(case: Path) -> None:
    """A sample without its origin proves nothing."""
    assert (case / "about.md").read_text().strip()


def test_every_dialect_has_cases() -> None:
    """The folders under cases/ are exactly the dialects."""
    assert set(DIALECTS) == {case.parent.name for case in find_cases()}
