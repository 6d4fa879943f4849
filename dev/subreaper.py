"""Run COMMAND, and adopt its descendants when their parents exit: `python dev/subreaper.py COMMAND...`.

The CPU time of a process is added to that of its parent once the parent has waited for it. But no process waits for the
JVM of a Spark session. On Linux, this program becomes the JVM's parent when the original one exits. Measurements of
this program therefore include the JVM.

The exit code is that of COMMAND, or 128 plus the signal number if a signal ended COMMAND.
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
"""The time to wait for such a JVM, which exits immediately. This program does not wait any longer for the remaining
processes.
"""


def main(command: list[str]) -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # COMMAND also receives Ctrl-C, and we exit after it
    code = process.wait()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.suppress(ChildProcessError):  # there are no more children
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
