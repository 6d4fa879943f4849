"""The charts accept the same settings below `config` as the programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.pages.chart_values import schemas


@pytest.mark.parametrize("path", schemas(), ids=[path.parent.name for path in schemas()])
def test_schema_is_current(path: Path) -> None:
    """The chart's schema has all current settings. `python -m dev.pages.chart_values` writes it."""
    assert schemas()[path] == path.read_text(encoding="utf-8")
