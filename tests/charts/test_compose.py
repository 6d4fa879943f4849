"""The compose file, parsed with Docker's own library. The tests start no engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dev.release.compose import FILE, ComposeError, load
from dev.release.promtool import MISSING, promtool


def test_it_is_valid() -> None:
    """Services depend only on existing services, and ours are as restricted as in the charts."""
    services = load()["services"]
    assert {"broker", "topic", "translator", "lake", "spark-sink", "prometheus", "grafana"} == services.keys()
    for name in ("translator", "spark-sink"):
        assert services[name]["read_only"]
        assert ["ALL"] == services[name]["cap_drop"]
        assert ["/tmp"] == services[name]["tmpfs"]
        assert name == services[name]["build"]["target"]


def test_a_typo_is_refused(tmp_path: Path) -> None:
    """The validator rejects a typo."""
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(FILE.read_text().replace("read_only:", "readonly:", 1))
    with pytest.raises(ComposeError, match="readonly"):
        load(wrong)


@pytest.mark.skipif(promtool() is None, reason=MISSING)
def test_prometheus_takes_its_settings() -> None:
    """Prometheus' own tool accepts its settings."""
    settings = FILE.with_name("prometheus.yaml")
    done = subprocess.run([str(promtool()), "check", "config", settings], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
