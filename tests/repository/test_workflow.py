"""Hosted CI only uses actions whose content cannot change."""

from __future__ import annotations

import re
from pathlib import Path

_WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def test_actions_are_pinned_to_a_commit() -> None:
    used = [line for file in _WORKFLOWS.glob("*.yml") for line in re.findall(r"uses: (.+)", file.read_text())]
    assert used
    assert [] == [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", line)]
