"""How Java is started: with the jars that Spark lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev.broker import Broker
from tests.spark_sink.test_job import PATIENCE_SECONDS, Sink

pytestmark = pytest.mark.integration


def test_without_jars(broker: Broker, tmp_path: Path) -> None:
    """One line with what is missing and what to do, exit code 2, and nothing of Java."""
    sink = Sink(broker, tmp_path, "sink-without-jars")
    (tmp_path / "conf").mkdir()
    command = [sys.executable, "-m", "spark_sink", "run", "-c", str(sink.config)]
    environment = {**sink.environment(), "SPARK_CONF_DIR": str(tmp_path / "conf")}  # not the checkout's default
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment
    )
    assert 2 == ended.returncode
    said = ended.stderr.splitlines()
    assert said[-1].startswith(
        "spark-sink: Spark has no jars of: Delta Lake, Spark's Kafka source, Spark's Avro functions"
    )
    assert "`make setup`" in said[-1]
    assert not [line for line in said if "Exception" in line or line.startswith(("\tat ", "Traceback"))]


def test_without_java(tmp_path: Path) -> None:
    """So is a machine without Java."""
    (tmp_path / "bash").symlink_to("/bin/bash")
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}
    command = [sys.executable, "-c", "from spark_sink import session; session._start_java({})"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "ConfigError: Java did not start (JAVA_GATEWAY_EXITED)" in ended.stderr.splitlines()[-1]
