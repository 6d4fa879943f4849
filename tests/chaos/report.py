"""Format outcomes as rows of the table in docs/reliability.md."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.cases import CASES, Case
from tests.chaos.run import Outcome

_NAMES = (
    *("case", "what happens", "delivery", "messages", "faults", "lost", "duplicates", "not identical"),
    *("order violations", "recovery", "result"),
)
COLUMNS = f"| {' | '.join(_NAMES)} |\n|{'---|' * len(_NAMES)}"


def row(outcome: Outcome) -> str:
    """Return one line. Its recovery is the longest of all faults."""
    verdict = outcome.verdict
    counted = [
        *(f"{verdict.messages:,}".replace(",", " "), len(outcome.faults), verdict.lost, verdict.duplicates),
        *(verdict.different, verdict.disorder),
    ]
    if outcome.error:
        counted[2:] = ["?"] * 4
    recovery = "-" if outcome.recovery is None else f"{outcome.recovery:.1f} s"
    result = "passed" if outcome.good else "**failed**"
    if verdict.invented:
        result += f", {verdict.invented} invented"
    cells = [outcome.case, CASES[outcome.case].faults, outcome.delivery, *counted, recovery, result]
    return f"| {' | '.join(map(str, cells))} |"


def store(page: Path, outcome: Outcome) -> None:
    """Replace the row of the same case and delivery in a page."""
    begin = f"| {outcome.case} |"
    lines = page.read_text(encoding="utf-8").splitlines()
    new = row(outcome)
    places = [
        number for number, line in enumerate(lines) if line.startswith(begin) and f"| {outcome.delivery} |" in line
    ]
    if places:
        lines[places[0]] = new
    else:
        (heading,) = [number for number, line in enumerate(lines) if line == COLUMNS.splitlines()[1]]
        lines.insert(heading + 1, new)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def not_run(case: Case, delivery: str = "at_least_once") -> str:
    """Return the line of a case without figures."""
    cells = [case.name, case.faults, delivery, *["-"] * (len(_NAMES) - 4), "not run"]
    return f"| {' | '.join(cells)} |"
