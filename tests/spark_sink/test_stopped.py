"""The sink is stopped during startup."""

from pathlib import Path

import pytest

from tests.stopped import MOMENTS, stopped_while_it_imports


@pytest.mark.parametrize("moment", MOMENTS)
def test_while_it_imports(tmp_path: Path, moment: str) -> None:
    """SIGTERM ends it silently, even where Python would swallow or replace an exception."""
    settings = {
        "pipeline": "shop",
        "kafka": {"bootstrap_servers": "nobody:1"},
        "tables": {"warehouse": str(tmp_path / "warehouse")},
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    ran = stopped_while_it_imports(tmp_path, "spark_sink", settings, "spark_sink.assembly", moment)
    assert (0, "", "") == (ran.returncode, ran.stdout, ran.stderr)
