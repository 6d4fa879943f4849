"""A daemon for PySpark's worker processes that ignores SIGTERM. It reads from the JVM through a pipe, and exits when
the JVM does.

Spark runs it as a module (`spark.python.daemon.module`) on the driver and the executors. PySpark's own work before and
after every task took 0.25 s of CPU time; here it takes almost none.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import signal
from pathlib import Path
from typing import BinaryIO
from zipimport import zipimporter

from pyspark import daemon

# Arrow reads this when it first needs memory, which is in the workers. With the default, mimalloc, a process that
# folded a million changes in 50 tables reached 1.1 GB. With this allocator it reached 0.8 GB.
_MEMORY_POOL = ("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


def main() -> None:
    """Create workers until the JVM has ended."""
    os.environ.setdefault(*_MEMORY_POOL)
    reread_changed_archives_only()
    _freeze_after_first_task()
    # Blocked instead of ignored, because the daemon sets its own handlers. Workers are forked from it, so they also
    # block the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    daemon.manager()  # type: ignore[no-untyped-call]


def reread_changed_archives_only() -> None:
    """Prevent `importlib.invalidate_caches` from reading unchanged archives again.

    A worker calls it before every task. Python 3.11 then reads the pyspark.zip directory once for each package in it,
    0.15 s each time (https://github.com/python/cpython/issues/103200; later versions read it when they need it).
    """
    reread = zipimporter.invalidate_caches
    known: dict[tuple[str, str], tuple[int, int]] = {}

    def invalidate_caches(self: zipimporter) -> None:
        try:
            status = Path(self.archive).stat()
        except OSError:
            reread(self)
            return
        place, found = (self.archive, self.prefix), (status.st_mtime_ns, status.st_size)
        if known.get(place) != found:
            reread(self)
            known[place] = found

    zipimporter.invalidate_caches = invalidate_caches  # type: ignore[method-assign]
    importlib.invalidate_caches()  # once, for all workers


def _freeze_after_first_task() -> None:
    """Hide the objects that exist after a worker's first task from the garbage collector. They are mostly modules.

    The daemon scans all objects after every task, which takes 0.1 s.
    """
    run_task = daemon.worker_main

    @functools.cache
    def freeze() -> None:
        gc.collect()
        gc.freeze()

    def run_and_freeze(infile: BinaryIO, outfile: BinaryIO) -> None:
        run_task(infile, outfile)
        freeze()

    daemon.worker_main = run_and_freeze


if __name__ == "__main__":
    main()
