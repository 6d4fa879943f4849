"""A command's child processes are attributed to it, whoever waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dev.run_tests import SUBREAPER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to somebody else")

BURNED_SECONDS = 0.5

BURN = f"import time\nwhile time.process_time() < {BURNED_SECONDS}: pass"
ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}]); sys.exit(3)"


def test_an_orphan_counts() -> None:
    """A command can end long before its child process. Both are measured, and the command's exit code is returned."""
    process = subprocess.Popen([*SUBREAPER, sys.executable, "-c", ORPHAN])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert 3 == process.returncode
    assert BURNED_SECONDS <= usage.ru_utime + usage.ru_stime


def test_it_ends_with_its_command() -> None:
    """SIGTERM is forwarded to the command, and the exit code shows it."""
    command = [*SUBREAPER, sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert 128 + signal.SIGTERM == process.wait()
