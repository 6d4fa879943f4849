"""The processor time of a tree of processes, some of which have ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.processes import Tree

_BUSY = "import time; end = time.process_time() + 2.0\nwhile time.process_time() < end: pass"
# A parent as the daemon of Spark's Python workers: it starts one, lives on, and says when that has ended.
_PARENT = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, getattr(signal, sys.argv[1]))
subprocess.Popen([sys.executable, "-c", {_BUSY!r}]).wait()
print("ended", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ends", ["SIG_DFL", "SIG_IGN"])
def test_the_time_of_what_has_ended(ends: str) -> None:
    """It counts once, whether its parent waits for it, as nearly all do, or does not want to know."""
    command = [sys.executable, "-c", _PARENT, ends]
    with (
        Tree() as tree,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent,
    ):
        before = tree.cpu_seconds()
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ended\n"
        once, again = (tree.cpu_seconds() - before for _ in range(2))
        parent.stdin.close()
    # The last sample may be a little old; the watcher and the start of two processes count, too.
    assert 1 < once < 3.5
    assert 1 < again < 3.5


def test_memory_is_the_most_since_the_last_look() -> None:
    with Tree() as tree:
        code = "held = bytearray(200_000_000); print(len(held), flush=True); input()"
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline()
            while tree.peak_bytes() < 200_000_000:
                pass
            child.stdin.close()
