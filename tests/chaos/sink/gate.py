"""Gates at the commits of mirrors in Spark's Python workers and before the driver's merges. A gate holds one process in
the middle of a batch, so that a test can kill processes at a known point.

The gate is a folder. Every pass before and after a commit takes one of the files `pass-*` from it. The process that
takes the last one creates the file `held` and waits for the file `released`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

FOLDER = "CHAOS_SINK_GATE"
"""Environment variable of the workers: path of the folder."""

MERGES_FOLDER = "CHAOS_SINK_MERGES_GATE"
"""Environment variable of the driver: path of the folder."""

_PATIENCE_SECONDS = 600.0


class CommitGate:
    """The test's side of the gate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def shut(self, passes: int) -> None:
        """Let `passes` - 1 processes pass and hold the next one. Each commit counts twice, before and after."""
        for name in ("held", "released"):
            (self.folder / name).unlink(missing_ok=True)
        for number in range(passes):
            (self.folder / f"pass-{number:03}").touch()

    def holds(self) -> int | None:
        """Return the held process, or None."""
        with suppress(FileNotFoundError):
            return int((self.folder / "held").read_text(encoding="utf-8"))
        return None

    def release(self) -> None:
        (self.folder / "released").touch()


def arm() -> None:
    """Put the gate around this process's commits of mirrors, and around the staging for Spark's commits."""
    from spark_sink.tables.delta.mirror import DeltaMirror
    from spark_sink.tables.staging import OrderingMirror

    folder = Path(os.environ[FOLDER])
    for writer in (DeltaMirror, OrderingMirror):
        writer.write = _guarded(writer.write, folder)  # type: ignore[method-assign]


def _guarded(commit: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    @wraps(commit)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _pass(folder)
        result = commit(*args, **kwargs)
        _pass(folder)
        return result

    return guarded


def arm_merges() -> None:
    """Put the gate before the merges of this process, the driver."""
    from spark_sink.tables.spark_writer import SparkWriter

    folder, merge = Path(os.environ[MERGES_FOLDER]), SparkWriter.carry_out

    @wraps(merge)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _pass(folder)
        return merge(*args, **kwargs)

    SparkWriter.carry_out = guarded  # type: ignore[method-assign]


def _pass(folder: Path) -> None:
    for ticket in sorted(folder.glob("pass-*")):
        with suppress(FileNotFoundError):  # another process was faster
            ticket.unlink()
            break
    else:
        return
    if any(folder.glob("pass-*")):
        return
    written = folder / f"held.{os.getpid()}"
    written.write_text(str(os.getpid()), encoding="utf-8")
    written.rename(folder / "held")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (folder / "released").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
