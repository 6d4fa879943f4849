"""`spark-sink run`, killing itself where the environment says."""

import os
import sys

from tests.chaos.sink.points import GROUP, arm


def main() -> None:
    os.environ[GROUP] = str(os.getpgrp())
    arm("driver")
    from spark_sink.commands import main as sink  # armed first, because others import names from the changed modules

    sys.argv = ["spark-sink", *sys.argv[1:]]
    sink()


if __name__ == "__main__":
    main()
