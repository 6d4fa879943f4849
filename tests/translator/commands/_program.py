"""Run the program `translator` in this process, because starting one takes longer than most commands.

Tests of the process itself start one.
"""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest

from translator.commands import main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Return the exit code and both outputs of the program."""
    # Commands that set up logging change it for the whole process.
    quiet = mock.patch("translator.service.log_setup.configure")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    line = ["translator", *arguments]
    with (
        quiet,
        mock.patch.object(sys, "argv", line),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as exited,
    ):
        main()
    said = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(line, int(exited.value.code or 0), *said)


def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Do the same in a separate process."""
    line = [sys.executable, "-m", "translator", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
