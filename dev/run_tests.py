"""Run the tests in parts, two at a time: `python -m dev.run_tests [--faults | --quick] [ARGUMENTS OF PYTEST]`.

Tests spend most of their time waiting for brokers, Spark and processes. A free worker takes the next part. The longest
parts come first. When a part ends, its output is printed, with its wall-clock time and CPU time. The CPU time includes
brokers and Spark processes. With `--faults`, only the tests with the mark `faults` run. With `--quick`, only tests
without a broker or Spark run. Otherwise, all tests except those with the mark `faults` run. `-m EXPRESSION` selects
among these tests.

The exit code is 0 if all parts pass. A part without selected tests passes, unless there are none in any part.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest")
SUBREAPER = (sys.executable, "-S", str(Path(__file__).with_name("subreaper.py")))
AT_ONCE = 2
"""The number of parts that run at a time on two processors. Three at a time were not faster."""
NO_TESTS = 5

# The longest part comes first. OTHERS is everything outside the other parts.
OTHERS = ("tests",)
_SERVICE = ("tests/translator/service", "tests/translator/kafka")
_COMMANDS = ("tests/translator/operations", "tests/translator/commands")
PARTS = (("tests/integration",), ("tests/spark_sink",), OTHERS, _SERVICE, _COMMANDS)
# The tests of the sink share one start of Spark. Without Spark, they can be split into two parts. This order keeps both
# processors busy for as long as possible.
QUICK = (OTHERS, _SERVICE, ("tests/spark_sink",), ("tests/spark_sink/apply",), _COMMANDS)
FAULTS = (
    ("tests/spark_sink",),
    ("tests/chaos",),
    ("tests/real_canal",),
    ("tests/spark_sink/s3",),
    ("tests/integration",),
    ("tests/compat",),
)

SELECTIONS = {"": "not faults", "--quick": "not faults and not integration", "--faults": "faults"}
"""The tests that each option selects, as a mark expression."""

# These tests need the results of `make chart-check` and `make image-check`.
APART = ("tests/charts", "tests/images")


class Runner:
    """Runs the parts, which end together with this process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._running: set[int] = set()
        self._printing = threading.Lock()
        self._started = time.monotonic()

    def run(self, part: Sequence[str]) -> int:
        """Run one part, print its output, and return pytest's exit code."""
        started = time.monotonic()
        command = [*SUBREAPER, *PYTEST, *part, *self._arguments]
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
            self._running.add(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            self._running.discard(process.pid)
            process.returncode = code = os.waitstatus_to_exitcode(status)
            said.seek(0)
            with self._printing:
                sys.stdout.buffer.write(said.read())
                print(f"tests: {' '.join(part)}: {_took(started, usage)}, exit code {code}", flush=True)
        return code

    def sum_up(self) -> None:
        """Print the total time for all parts."""
        print(f"tests: all: {_took(self._started, resource.getrusage(resource.RUSAGE_CHILDREN))}", flush=True)

    def end(self) -> None:
        for process in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _took(started: float, usage: resource.struct_rusage) -> str:
    return f"{time.monotonic() - started:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of processors"


def parts(option: str, marks: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return the pytest arguments for each part. Together, the parts contain all tests that the option selects, except
    the tests for charts and images.

    Args:
        option: a key of SELECTIONS.
        marks: further mark expressions. A test must match all expressions.
    """
    selected = " and ".join(f"({expression})" for expression in (SELECTIONS[option], *marks))
    chosen = {"": PARTS, "--quick": QUICK, "--faults": FAULTS}[option]
    return [(*part, *_but_for_others(part, [*chosen, APART]), "-m", selected) for part in chosen]


def _but_for_others(part: Sequence[str], parts: Sequence[Sequence[str]]) -> list[str]:
    """Return arguments that exclude nested folders that are not in this part."""
    folders = [folder for other in parts for folder in other]
    return [f"--ignore={folder}" for folder in folders if any(folder.startswith(f"{own}/") for own in part)]


def _without_marks(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return pytest's arguments without `-m`, and the expressions of all `-m` options. pytest itself would use only the
    last one.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-m", action="append", default=[])
    found, others = parser.parse_known_args(arguments)
    return others, found.m


def result(codes: Sequence[int]) -> int:
    """Return the overall exit code, from the exit codes of the parts."""
    ran = [code for code in codes if code != NO_TESTS]
    return max(ran, key=abs) if ran else NO_TESTS


def main(arguments: Sequence[str]) -> int:
    option = arguments[0] if arguments and arguments[0] in SELECTIONS else ""
    arguments = arguments[1:] if option else arguments
    if any(argument and Path(ROOT, argument.partition("::")[0]).exists() for argument in arguments):
        # If arguments select files or tests, run only those, in a single part.
        os.execv(PYTEST[0], [*PYTEST, *arguments])  # noqa: S606 - no shell is what is wanted
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the same as Ctrl-C
    others, marks = _without_marks(arguments)
    runner = Runner(others)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            code = result(list(pool.map(runner.run, parts(option, marks))))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.end()
            return 130
    runner.sum_up()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
