"""The short form of the fault matrix. tests/chaos/cases.py lists what it covers; `make chaos` runs the long form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev.servers.broker import Broker
from tests.chaos.cases import BROKER_SETTINGS, CASES, MATRIX, SHORT
from tests.chaos.run import execute
from tests.chaos.worker import ROOT


@pytest.fixture(scope="module")
def own() -> Iterator[Broker]:
    """A broker that cases can kill."""
    with Broker(settings=BROKER_SETTINGS) as running:
        yield running


@pytest.mark.integration
@pytest.mark.faults
@pytest.mark.parametrize("name", [case.name for case in SHORT if case.brokers == 1])
def test_on_one_broker(name: str, own: Broker) -> None:
    """Nothing is lost or invented, duplicates match byte for byte, and first occurrences are in order."""
    outcome = execute(CASES[name], CASES[name].size, own)
    assert outcome.good, f"{outcome.error or outcome.verdict}; logs in {outcome.directory}"


def test_every_case_is_published() -> None:
    """docs/reliability.md has a line for each case of the long form, in the words of the table, whether run or not."""
    lines = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines()
    for case in MATRIX:
        assert any(line.startswith(f"| {case.name} | {case.faults} |") for line in lines), case.name


def test_every_case_has_a_short_form_or_a_reason() -> None:
    """Every case has an existing short form or a reason why it has none."""
    short = {case.name for case in SHORT}
    for case in MATRIX:
        assert (case.short in short) != bool(case.only_long), case.name
