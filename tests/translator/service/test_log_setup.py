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


def test_the_parts_of_faust_are_not_logged() -> None:
    """Faust names the logger of a part after the module of its class. An operator cannot use these names."""
    parts = """
import logging
from translator.service import faust_pauses, faust_transport, stopping
log_setup.configure("json", "info")
for kind in (stopping.BoundedStopApp, faust_pauses.PromptWorker, faust_pauses.PromptTables):
    kind.logger.info("[^-%s]: Starting...", kind.__name__)
    kind.logger.error("[^-%s]: failed", kind.__name__)
log.info("a")
"""
    command = [sys.executable, "-c", TRANSLATOR.format(level="info") + parts]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert [] == [event for event in events if "Starting" in event]
    assert ([True] * 3, "a") == (["failed" in event for event in events[:-1]], events[-1])


@pytest.mark.parametrize("program", [TRANSLATOR, SINK], ids=["translator", "spark-sink"])
@pytest.mark.parametrize(("level", "written"), [("info", "abcd"), ("warning", "bcd"), ("error", "cd")])
def test_level(program: str, level: str, written: str) -> None:
    """The last line before an exit with an error is always written."""
    done = subprocess.run(
        [sys.executable, "-c", program.format(level=level) + LINES], capture_output=True, text=True, check=True
    )
    lines = (done.stdout + done.stderr).splitlines()
    assert list(written) == [json.loads(line)["event"] for line in lines]
