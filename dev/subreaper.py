"""`python dev/subreaper.py COMMAND...` runs COMMAND and takes in the processes below it that outlive their parents.

The processor time of a process counts for its parent once the parent has waited for it. Nobody waits for the JVM of a
Spark session: where Linux runs, it becomes our child when its parent has ended, and whoever measures us measures it.

Exit code: that of COMMAND; 128 and the signal, when a signal ended it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # from <linux/prctl.h>
PATIENCE_SECONDS = 30.0
"""Such a JVM ends by itself at once; what means to stay does not hold us up for longer."""


def main(command: list[str]) -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches COMMAND, too, and we end after it
    code = process.wait()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.suppress(ChildProcessError):  # there is none left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
