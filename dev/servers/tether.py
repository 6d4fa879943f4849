"""Run COMMAND in this process. On Linux, the process dies when PARENT dies: `python dev/servers/tether.py PARENT
COMMAND...`.

The child has to set up this tether. If the parent has threads, however, code between fork and exec is unsafe, and every
process with a Kafka client has threads. A separate program therefore sets up the tether. The process ID stays the same
after exec.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the tether was set up, so nothing would stop us
        return
    os.execv(command[0], command)  # noqa: S606 - no shell is what is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
