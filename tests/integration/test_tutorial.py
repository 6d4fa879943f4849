"""The files and commands of the tutorial (docs/tutorial.md) work unchanged."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from dev.jars import cache
from dev.java import find_java
from dev.servers.broker import LOOPBACK
from dev.servers.stack import StackError, descendants, wait_until
from tests.repository.pages import ROOT, page

SECONDS = 300  # timeout for hanging tests
PORT = "9092"
CLONED = ("cdc_core", "translator", "spark_sink", "dev", "pyproject.toml", "README.md", "LICENSE")
BLOCK = re.compile(r"(?:`(?P<file>\w+\.\w+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
STATEFUL = re.compile(r"(cd|export) ")


class Block(NamedTuple):
    """A code block of the page. The reader saves it as `file`."""

    file: str | None
    language: str
    text: str


class Reader:
    """A reader who follows the page, with one terminal for commands that end and one for each program that keeps
    running.

    Args:
        home: the home directory, initially empty.
        clone: the initial directory of the first terminal.
        port: replaces the broker port on the page.
    """

    def __init__(self, home: Path, clone: Path, port: int) -> None:
        self._home = home
        self._clone = clone
        self._port = port
        self._state: list[str] = []
        self._transcript = ""
        self.programs: list[subprocess.Popen[bytes]] = []
        self.broker_log = home / "terminal-1.log"

    def save(self, block: Block) -> None:
        (self._home / "tutorial" / str(block.file)).write_text(self._local(block.text), encoding="utf-8")

    def run(self, command: str, code: int = 0) -> str:
        """Run a command in the first terminal, check its exit code and return its output."""
        script = "\n".join(["set -e", *self._state, self._local(command)])
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            cwd=self._clone,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self._transcript += f"$ {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == code, self._transcript[-10_000:]
        self._state += [line for line in command.splitlines() if STATEFUL.match(line)]
        return done.stdout + done.stderr

    def start(self, command: str) -> None:
        """Start a block in a new terminal."""
        log = self._home / f"terminal-{len(self.programs) + 1}.log"
        # The shell becomes the program, so that Ctrl-C reaches only the program.
        *before, program = self._local(command).strip().splitlines()
        script = "\n".join(["set -e", *before, f"exec {program}"])
        with log.open("wb") as output:
            self.programs.append(
                subprocess.Popen(
                    ["/bin/bash", "-c", script],
                    cwd=self._clone,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        if len(self.programs) == 1:
            wait_until("the broker's address", SECONDS, self._has_broker)

    def _has_broker(self) -> bool:
        assert self.programs[0].poll() is None, self.broker_log.read_text()
        return f"{LOOPBACK}:{self._port}" in self.broker_log.read_text()

    def check(self) -> None:
        """Fail if a program has exited that should still be running."""
        for number, program in enumerate(self.programs, 1):
            log = self._home / f"terminal-{number}.log"
            assert program.poll() is None, f"terminal {number} exited with code {program.poll()}: {_end_of(log)}"

    def logs(self) -> str:
        """Return the last lines of every terminal."""
        numbers = range(1, len(self.programs) + 1)
        return "\n".join(f"terminal {number}: {_end_of(self._home / f'terminal-{number}.log')}" for number in numbers)

    def stop(self) -> list[int]:
        """Press Ctrl-C in the terminals, starting with the last one, and return the exit codes."""
        codes = []
        for program in reversed(self.programs):
            program.send_signal(signal.SIGINT)
            codes.append(program.wait(SECONDS))
        return codes

    def close(self) -> None:
        """Stop the programs that a failed test left running."""
        for program in self.programs:
            if program.poll() is None:
                for pid in [program.pid, *descendants(program.pid)]:
                    os.kill(pid, signal.SIGKILL)
                program.wait(SECONDS)

    def _local(self, text: str) -> str:
        return re.sub(rf"\b{PORT}\b", str(self._port), text)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self._home),
            "CDC_CACHE": str(cache().parent),
            "JAVA_HOME": str(find_java().executable.resolve().parents[1]),
            # The build backend and all dependencies are installed, so nothing is downloaded again.
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_NO_INDEX": "1",
        }


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-3000:]


def blocks_of(text: str) -> list[Block]:
    return [Block(found["file"], found["language"], found["text"]) for found in BLOCK.finditer(text)]


def is_shown(expected: str, printed: str) -> bool:
    """Return whether the output contains these consecutive lines. `…` stands for the rest of a line."""
    lines = [re.escape(line).replace("…", ".*") for line in expected.splitlines()]
    return re.search("^" + r"\n".join(lines) + "$", printed, re.MULTILINE) is not None


@pytest.fixture
def reader(tmp_path: Path, free_port: int) -> Iterator[Reader]:
    """A reader with a clone, and a Python whose new environments contain the packages of this one."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in CLONED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    reader = Reader(tmp_path, clone, free_port)
    try:
        yield reader
    finally:
        reader.close()


def lend_packages(environment: Path) -> None:
    """Give a new environment the packages of this one, so that pip finds them installed."""
    (folder,) = environment.glob("lib/python*/site-packages")
    # The setuptools of Python 3.11 is too old for our pyproject.toml. The reader's isolated builds fetch a newer one.
    for outdated in folder.glob("setuptools*"):
        shutil.rmtree(outdated)
    (folder / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.mark.integration  # its commands start a broker and Spark
def test_every_step(reader: Reader, tmp_path: Path) -> None:
    """Every file and command of the page works, in order, and prints what the page shows."""
    last, shown = "", 0
    ends = {"translator send -c translator.yaml shop.orders broken.json": (1, "MALFORMED_JSON")}
    for block in blocks_of(page("tutorial.md")):
        if block.file is not None:
            reader.save(block)
        elif block.language == "text":
            try:
                wait_until(block.text, SECONDS, partial(_prints, reader, last, block.text))
            except StackError as error:
                raise AssertionError(f"{error}\n{reader.logs()}") from error
            shown += 1
        elif block.text.startswith("# terminal"):
            reader.start(block.text)
        else:
            for command in block.text.splitlines():
                last = command
                # The page shows what the script prints once the sink is running. Repeat the script until it prints
                # that.
                if command == "spark-sink check -c sink.yaml --connect":
                    # A human reader is slower than the translator, which creates the topics meanwhile.
                    wait_until("the topics", SECONDS, partial(_succeeds, reader, command))
                elif command != "python show.py":
                    code, part = ends.get(command, (0, ""))
                    printed = reader.run(command, code)
                    assert part in printed
                if " -m venv " in command:
                    lend_packages(tmp_path / "cdc")
    assert 3 == shown
    assert [0, 0, 0] == reader.stop()


def _succeeds(reader: Reader, command: str) -> bool:
    """Run a check, and return whether all of its answers are right."""
    try:
        reader.run(command)
    except AssertionError as error:
        if "WRONG  topic" in str(error):
            return False
        raise
    return True


def _prints(reader: Reader, command: str, expected: str) -> bool:
    """Run a command, and tell whether it prints what the page shows; a table may not exist yet."""
    reader.check()
    try:
        return is_shown(expected, reader.run(command))
    except AssertionError as error:
        if "TableNotFoundError" in str(error):
            return False
        raise


def test_every_block_is_used() -> None:
    """Every block of the page is a file, a command or an output."""
    blocks = blocks_of(page("tutorial.md"))
    assert page("tutorial.md").count("```") == 2 * len(blocks)
    assert {"orders.jsonl", "customers.jsonl", "feed.py", "show.py"} < {block.file for block in blocks}
    assert {"sh", "text"} == {block.language for block in blocks if block.file is None}


@pytest.mark.parametrize(
    ("expected", "printed", "wanted"),
    [("a … c", "x\na b c\n", True), ("a\nb", "a\nb\n", True), ("a\nb", "a\nx\nb\n", False), ("a", "ab\n", False)],
)
def test_outputs_are_compared(expected: str, printed: str, wanted: bool) -> None:
    """The comparison uses whole, consecutive lines."""
    assert wanted is is_shown(expected, printed)
