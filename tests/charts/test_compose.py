"""The compose file, as Docker's library reads it; no engine runs it here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dev.release.compose import FILE, ComposeError, load
from dev.release.promtool import MISSING, promtool


def test_it_is_valid() -> None:
    """Each service that another waits for is there, and ours are as closed as in the charts."""
    services = load()["services"]
    assert {"broker", "topic", "translator", "lake", "spark-sink", "prometheus", "grafana"} == services.keys()
    for name in ("translator", "spark-sink"):
        assert services[name]["read_only"]
        assert ["ALL"] == services[name]["cap_drop"]
        assert ["/tmp"] == services[name]["tmpfs"]
        assert name == services[name]["build"]["target"]


def test_a_typo_is_refused(tmp_path: Path) -> None:
    """The validator can say no."""
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(FILE.read_text().replace("read_only:", "readonly:", 1))
    with pytest.raises(ComposeError, match="readonly"):
        load(wrong)


@pytest.mark.skipif(promtool() is None, reason=MISSING)
def test_prometheus_takes_its_settings() -> None:
    """Its own tool finds no mistake in them."""
    settings = FILE.with_name("prometheus.yaml")
    done = subprocess.run([str(promtool()), "check", "config", settings], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
