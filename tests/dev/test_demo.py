"""`python -m dev.demo` can be interrupted at any point."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dev.servers.stack import wait_until

PATIENCE_SECONDS = 300.0


@pytest.mark.integration
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    """An interrupt ends the broker and both programs, even if the shell of a script ignores Ctrl-C."""
    folder = tmp_path / "demo"
    said = tmp_path / "said"
    with said.open("wb") as output:
        demo = subprocess.Popen(
            [sys.executable, "-m", "dev.demo", "--directory", folder],
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
    try:
        # By then the broker has them, and both programs have started.
        wait_until("messages are fed", PATIENCE_SECONDS, lambda: "raw messages" in said.read_text())
        assert len(_processes_of(folder)) > 1
        demo.send_signal(signal.SIGINT)
        assert 130 == demo.wait(PATIENCE_SECONDS), said.read_text()
    finally:
        demo.kill()
        demo.wait()
    wait_until("all have ended", PATIENCE_SECONDS, lambda: not _processes_of(folder))


def _processes_of(folder: Path) -> list[Path]:
    """Return the processes whose command line contains the folder."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in command.read_bytes():
                found.append(command)
        except OSError:
            continue  # it has ended meanwhile
    return found
