"""PySpark's own daemon of worker processes, deaf to SIGTERM; it ends with the JVM, whose pipe it reads.

Run by Spark as a module (`spark.python.daemon.module`), in driver and executors.
"""

from __future__ import annotations

import os
import signal

from pyspark import daemon

# Read by Arrow when it first needs memory, which is in the workers. Under its default, mimalloc, a process that folded
# a million changes of 50 tables reached 1.1 GB, under this one 0.8 GB.
_MEMORY_POOL = ("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")

if __name__ == "__main__":
    os.environ.setdefault(*_MEMORY_POOL)
    # Blocked, not ignored: the daemon sets handlers of its own. Workers are forked from it, and so are deaf, too.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    daemon.manager()  # type: ignore[no-untyped-call]
