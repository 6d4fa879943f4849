"""`python -m spark_sink`, the program that spark-submit runs, and the console command `spark-sink`."""

import os
import sys
from contextlib import suppress

from spark_sink.commands import main


def program() -> None:
    """Run the command line. A command other than `run` ends without the interpreter's shutdown.

    The native libraries of the tables keep threads for object stores. If the interpreter shuts down while one of them
    is still working, it aborts a process whose command has succeeded. `run` needs the shutdown, which ends Spark.
    """
    code: int | str | None = None
    try:
        main()
    except SystemExit as end:
        code = end.code
    if sys.argv[1:2] == ["run"] or isinstance(code, str):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    program()
