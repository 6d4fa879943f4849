"""PySpark's own daemon of worker processes, deaf to SIGTERM; it ends with the JVM, whose pipe it reads.

Run by Spark as a module (`spark.python.daemon.module`), in driver and executors.
"""

from __future__ import annotations

import signal

from pyspark import daemon

if __name__ == "__main__":
    # Blocked, not ignored: the daemon sets handlers of its own. Workers are forked from it, and so are deaf, too.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    daemon.manager()  # type: ignore[no-untyped-call]
