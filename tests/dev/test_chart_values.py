"""What the charts' values may hold below `config` is what the programs take."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.pages.chart_values import schemas


@pytest.mark.parametrize("path", schemas(), ids=[path.parent.name for path in schemas()])
def test_schema_is_current(path: Path) -> None:
    """A setting that came or went is in the chart's schema: `python -m dev.pages.chart_values`."""
    assert schemas()[path] == path.read_text(encoding="utf-8")
