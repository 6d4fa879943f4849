"""Lines below the log level are not written. Each test uses a process, because logging is global."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TRANSLATOR = """
import structlog
from translator.service import log_setup
log_setup.configure("json", {level!r})
log = structlog.get_logger("translator")
"""
SINK = """
import structlog
from spark_sink import logs
log = structlog.get_logger()
logs.configure({level!r})
"""
LINES = """
log.info("a")
log.warning("b")
log.error("c")
log.critical("d")
"""


@pytest.mark.parametrize("program", [TRANSLATOR, SINK], ids=["translator", "spark-sink"])
@pytest.mark.parametrize(("level", "written"), [("info", "abcd"), ("warning", "bcd"), ("error", "cd")])
def test_level(program: str, level: str, written: str) -> None:
    """The last line before an exit with an error is always written."""
    done = subprocess.run(
        [sys.executable, "-c", program.format(level=level) + LINES], capture_output=True, text=True, check=True
    )
    lines = (done.stdout + done.stderr).splitlines()
    assert list(written) == [json.loads(line)["event"] for line in lines]
