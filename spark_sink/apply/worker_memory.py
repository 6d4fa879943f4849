"""The memory of a worker process, as Linux tells it."""

from __future__ import annotations

import os
from pathlib import Path

_STATM = Path("/proc/self/statm")


def megabytes() -> int:
    """What this process holds in memory now, in MiB; 0 where that is not told."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
