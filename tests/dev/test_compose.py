"""The compose file mounts existing files, and the programs accept its settings. tests/charts validates the file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import spark_sink.config.settings
import translator.config.settings
from dev.release.compose import FILE
from tests.translator.commands import _program

FOLDER = FILE.parent
SERVICES: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
PROMETHEUS: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
PROGRAMS = {"translator": translator.config.settings, "sink": spark_sink.config.settings}


@pytest.mark.parametrize("name", PROGRAMS)
def test_settings(name: str) -> None:
    """The programs accept the settings, which use the broker of the compose file."""
    settings = PROGRAMS[name].parse(_text(name), {}, f"{name}.yaml")
    assert "broker:9092" == settings.kafka.bootstrap_servers


@pytest.mark.parametrize("name", ["translator", "spark-sink"])
def test_it_is_scraped_where_it_answers(name: str) -> None:
    """Prometheus scrapes the service and port of the settings."""
    (job,) = [one for one in PROMETHEUS["scrape_configs"] if one["job_name"] == name]
    assert [f"{name}:8080"] == job["static_configs"][0]["targets"]
    port = {
        "translator": translator.config.settings.parse(_text("translator"), {}, "translator.yaml").web.port,
        "spark-sink": spark_sink.config.settings.parse(_text("sink"), {}, "sink.yaml").metrics.port,
    }
    assert 8080 == port[name]
    assert SERVICES[name]["ports"][0].endswith(":8080")


def test_mounted_files() -> None:
    """Every mounted file exists. Otherwise the engine would create a folder in its place."""
    sources = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())]
    files = [FOLDER / source for source in sources if source.startswith(".")]
    assert files
    assert [] == [path for path in files if not path.exists()]


def test_the_message() -> None:
    """The source can read the file that `translator send` sends whole."""
    source = yaml.safe_load(_text("translator"))["sources"][0]
    options = [word for name, value in source["options"].items() for word in ("-o", f"{name}={value}")]
    done = _program.run("translate", "-d", source["dialect"], *options, "--raw", str(FOLDER / "message.json"))
    assert "records=1 translated=1" in done.stderr


def _text(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text()
