"""The image's entry point, run as in Kubernetes, with this machine's Java and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = Path(__file__).parents[2] / "dev" / "image_entry.sh"

# Timeout for hanging processes.
PATIENCE_SECONDS = 300.0


def _run(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [ENTRY, *arguments],
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_the_program() -> None:
    """Arguments that are not Spark's go to the program, and its exit code is returned."""
    assert "spark-sink" in _run(["--version"]).stdout
    assert 2 == _run(["run"]).returncode


@pytest.mark.integration
def test_a_driver() -> None:
    """The operator's spark-submit creates a driver pod, and the arguments are for the driver in it."""
    assert "version 4." in _run(["driver", "--version"], SPARK_DRIVER_BIND_ADDRESS="127.0.0.1").stderr


@pytest.mark.integration
def test_an_executor(free_port: int) -> None:
    """Spark's executor gets all of its arguments and tries to reach its driver. It fails with the driver's address."""
    ended = _run(
        ["executor"],
        SPARK_JAVA_OPT_0="-XX:TieredStopAtLevel=1",
        SPARK_JAVA_OPT_1="-Dspark.rpc.numRetries=1",
        SPARK_EXECUTOR_MEMORY="128m",
        SPARK_EXECUTOR_CORES="1",
        SPARK_EXECUTOR_ID="1",
        SPARK_DRIVER_URL=f"spark://CoarseGrainedScheduler@127.0.0.1:{free_port}",
        SPARK_APPLICATION_ID="spark-1",
        SPARK_EXECUTOR_POD_IP="127.0.0.1",
        SPARK_EXECUTOR_POD_NAME="sink-exec-1",
        SPARK_RESOURCE_PROFILE_ID="0",
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert 1 == ended.returncode
    assert f"Failed to connect to /127.0.0.1:{free_port}" in ended.stderr + ended.stdout


def test_an_executor_without_its_driver() -> None:
    """A missing Spark variable ends it, with the variable's name in the error."""
    variables = {"SPARK_EXECUTOR_MEMORY": "128m"}
    ended = _run(["executor"], **variables)
    assert 0 != ended.returncode
    assert "SPARK_DRIVER_URL" in ended.stderr
