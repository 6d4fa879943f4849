"""`python dev/servers/tether.py PARENT COMMAND...` becomes COMMAND. On Linux, it dies when PARENT dies.

The tie has to be made in the child, and code between fork and exec is unsafe in a parent with threads, which every user
of a Kafka client has. That is why this is a process of its own. The process id stays the same through exec.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the tie was made: nobody is left to stop us
        return
    os.execv(command[0], command)  # noqa: S606 - no shell is what is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
