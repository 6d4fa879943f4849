"""The program `translator`, in this process: its start would cost more than most of what it does.

Where the process itself is what is tested, it has one of its own.
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
    """Exit code and both outputs of the program."""
    # The commands that set up logging do it for their process.
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
    """The same in a process of its own."""
    line = [sys.executable, "-m", "translator", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
