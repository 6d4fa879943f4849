"""Shared by the tests of our servers: their commands, processes they leave behind, and a port in use."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.servers.broker import LOOPBACK

ROOT = Path(__file__).parents[2]


def command(server: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start `python -m dev.servers.SERVER` with its output in pipes."""
    words = [sys.executable, "-m", f"dev.servers.{server}", *arguments]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie can be signalled, but it is dead. Its parent has just not waited for it yet.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@contextmanager
def taken_port() -> Iterator[int]:
    """A loopback port in use."""
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        yield other.getsockname()[1]
