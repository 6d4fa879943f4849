"""Measure the resources that a process and its descendants use, for jobs with several processes such as Spark's."""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.2


class _Process(NamedTuple):
    """The fields of a line in /proc/PID/stat: ticks including reaped children, resident pages, and the start time in
    ticks.
    """

    parent: int
    ticks: int
    pages: int
    started: int


class Usage(NamedTuple):
    """The CPU time so far (user, system and reaped children), and the current memory."""

    cpu_seconds: float
    resident_bytes: int


def usage(pids: Iterable[int]) -> Usage:
    """Return the total usage of several processes. Processes that have ended do not count."""
    found = [process for pid in pids if (process := _read(pid)) is not None]
    return Usage(sum(one.ticks for one in found) / _TICKS, sum(one.pages for one in found) * _PAGE)


class Tree:
    """A context manager that watches this process and its descendants, on Linux only.

    Args:
        apart: the descendants to exclude, together with their own descendants.
    """

    def __init__(self, apart: Collection[int] = ()) -> None:
        self._apart = apart
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="process tree", daemon=True)
        self._lock = threading.Lock()
        self._peak = 0
        self._unwaited: dict[tuple[int, int], int] = {}
        self._lost = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def cpu_seconds(self) -> float:
        """Return the CPU time so far (user and system), including exited processes."""
        with self._lock:
            return (sum(process.ticks for process in self._sampled().values()) + self._lost) / _TICKS

    def peak_bytes(self) -> int:
        """Return the peak memory since the last call. Shared pages are counted once for each process."""
        with self._lock:
            peak, self._peak = self._peak, 0
        return peak

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            with self._lock:
                pages = sum(process.pages for process in self._sampled().values())
                self._peak = max(self._peak, pages * _PAGE)

    def _sampled(self) -> dict[int, _Process]:
        """Return the current process tree.

        The kernel adds the time of an exited process to that of its parent, unless the parent ignores SIGCHLD. The
        daemon for Spark's Python workers does ignore it. For the descendants of such a process, this object therefore
        keeps the last known time.
        """
        tree = _tree(self._apart)
        ignoring = {pid for pid in {process.parent for process in tree.values()} if _ignores_ends(pid)}
        unwaited = {(pid, one.started): one.ticks for pid, one in tree.items() if one.parent in ignoring}
        self._lost += sum(ticks for known, ticks in self._unwaited.items() if known not in unwaited)
        self._unwaited = unwaited
        return tree


def _tree(apart: Collection[int]) -> dict[int, _Process]:
    found = {pid: process for pid in _pids() if (process := _read(pid)) is not None}
    children = defaultdict(list)
    for pid, process in found.items():
        children[process.parent].append(pid)
    tree, front = {}, [os.getpid()]
    while front:
        pid = front.pop()
        tree[pid] = found[pid]
        front += [child for child in children[pid] if child not in apart]
    return tree


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # the process has ended
        return None
    # The name is in parentheses and can contain any character. proc(5) fields are counted from the field after it.
    fields = text.rpartition(")")[2].split()
    return _Process(int(fields[1]), sum(map(int, fields[11:15])), int(fields[21]), int(fields[19]))


def _ignores_ends(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # the process has ended
        return False
    (ignored,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)
