"""The table of supported versions in docs/stability.md repeats the files that decide them."""

import re
import tomllib
from pathlib import Path

import yaml

from dev.release.charts import CHARTS, FIRST_KUBERNETES, LAST_KUBERNETES

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
JARS = (ROOT / "dev" / "jars.xml").read_text()


def _pinned(package: str) -> str:
    (found,) = [text for text in PROJECT["optional-dependencies"]["sink"] if re.match(rf"{package}\b", text)]
    return str(found.partition("==")[2])


def _jar(name: str) -> str:
    (found,) = re.findall(rf'name="{name}" rev="([^"]+)"', JARS)
    return str(found)


def _same(version: str) -> tuple[str, str]:
    return version, version


def _python() -> tuple[str, str]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    return f"{PROJECT['requires-python'].removeprefix('>=')} or newer", ", ".join(tested)


def _kubernetes() -> tuple[str, str]:
    charts = "".join((ROOT / "helm" / chart / "Chart.yaml").read_text() for chart in CHARTS)
    (oldest,) = set(re.findall(r'kubeVersion: ">= ([\d.]+)\.0-0"', charts))
    return f"{oldest} or newer", f"1.{FIRST_KUBERNETES} to 1.{LAST_KUBERNETES}, by their schemas"


def test_the_table_repeats_the_files() -> None:
    section = (ROOT / "docs" / "stability.md").read_text().partition("## Supported versions")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line][2:]
    spark = _pinned("pyspark")
    assert {
        "Python": _python(),
        "Kafka brokers": ("no limit is known", _jar("kafka_2.13")),
        "Spark": _same(spark),
        "Delta Lake for Spark": _same(_jar(r"delta-spark_[\d.]+_2.13")),
        "deltalake": _same(_pinned("deltalake")),
        "Iceberg for Spark": _same(_jar(r"iceberg-spark-runtime-[\d.]+_2.13")),
        "pyiceberg": _same(_pinned("pyiceberg")),
        "Kubernetes": _kubernetes(),
    } == {name: (supported, tested) for name, supported, tested, _ in rows}
    assert spark == _jar(r"spark-avro_2.13")
