"""The memory of processes during a run, and whether it grows."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path


def resident(pid: int) -> float:
    """Return a process's resident memory in MiB.

    Raises:
        OSError: it has ended.
    """
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(samples: Sequence[float]) -> float:
    """Return the growth from the middle third of a run to its last third, as a share of the middle one."""
    third = len(samples) // 3
    return statistics.median(samples[-third:]) / statistics.median(samples[third : 2 * third]) - 1
