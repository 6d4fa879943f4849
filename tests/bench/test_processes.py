"""The CPU time of a process tree includes processes that have ended."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bench.processes import Tree, usage

# It reports when its time is used up and ends when told to. The test measures it between the two.
_BUSY = """
import time
end = time.process_time() + 1.0
while time.process_time() < end:
    pass
print("used", flush=True)
input()
"""
# Like the parent of Spark's Python workers, it starts a process, keeps running, and reports the end of its child.
_PARENT = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, getattr(signal, sys.argv[1]))
subprocess.Popen([sys.executable, "-c", {_BUSY!r}]).wait()
print("ended", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ends", ["SIG_DFL", "SIG_IGN"])
def test_the_time_of_what_has_ended(ends: str) -> None:
    """The time counts once, whether the parent waits for the child, as nearly all do, or ignores it."""
    command = [sys.executable, "-c", _PARENT, ends]
    with (
        Tree() as tree,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent,
    ):
        assert parent.stdin is not None
        assert parent.stdout is not None
        before = _of_others(tree)
        assert parent.stdout.readline() == b"used\n"
        _of_others(tree)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == b"ended\n"
        once, again = (_of_others(tree) - before for _ in range(2))
        parent.stdin.close()
    # The start of two processes also counts. Time that counts twice would be 2 s or more.
    assert 0.95 < once < 1.9
    assert 0.95 < again < 1.9


def test_use_of_processes_together() -> None:
    """The sum covers the CPU time and memory of the given processes only. Ended processes count as zero."""
    code = f"held = bytearray(100_000_000)\n{_BUSY.replace('1.0', '0.5')}"
    command = [sys.executable, "-c", code]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"used\n"
    one, both = (usage(child.pid for child in part) for part in (children[:1], children))
    for child in children:
        child.communicate(b"\n")
    assert 0.45 < one.cpu_seconds
    assert 0.45 < both.cpu_seconds - one.cpu_seconds
    assert 100_000_000 < one.resident_bytes < 200_000_000 < both.resident_bytes
    assert (0.0, 0) == usage(child.pid for child in children)


def _of_others(tree: Tree) -> float:
    """Return the time of a tree without this process, whose threads keep running, for longer on a busy machine."""
    return tree.cpu_seconds() - time.process_time()


def test_memory_is_the_most_since_the_last_look() -> None:
    with Tree() as tree:
        code = "held = bytearray(200_000_000); print(len(held), flush=True); input()"
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline()
            while tree.peak_bytes() < 200_000_000:
                time.sleep(0.05)
            child.stdin.close()
