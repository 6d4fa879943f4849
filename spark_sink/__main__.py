"""`python -m spark_sink`, the program that spark-submit runs, and the console command `spark-sink`."""

import os
import sys

from spark_sink.commands import main


def program() -> None:
    """Run the command line. Every command except `run` exits without shutting down the interpreter.

    The native table libraries keep threads for object stores. If the interpreter shuts down while one of these threads
    is still working, it aborts the process, although the command has succeeded. `run` needs the shutdown, which ends
    Spark.
    """
    try:
        main()
    except SystemExit as end:
        if sys.argv[1:2] == ["run"] or not isinstance(end.code, int):
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)


if __name__ == "__main__":
    program()
