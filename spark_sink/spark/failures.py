"""Report a failed Spark job to the operator in one line.

Spark's error messages have stack traces, and often contain row values. The line therefore contains Spark's own text
only if the cause is infrastructure, such as a lost executor. For all other errors, it contains the class of the error
and the location.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from spark_sink.errors import FatalError, Overtaken

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""The errors that PySpark raises for a failed job."""

# Python error classes whose messages are about files, networks, packages or memory.
_TELLING = frozenset(
    {
        *("OSError", "FileNotFoundError", "PermissionError", "ConnectionError", "ConnectionRefusedError"),
        *("TimeoutError", "MemoryError", "ImportError", "ModuleNotFoundError", "FatalError", "ConfigError"),
        *("PySparkRuntimeError", "TableNotFoundError", "DeltaProtocolError", "CommitFailedError"),
    }
)

# `  File "/x/y.py", line 12, in name` in a Python stack trace, and `package.Kind: message` after the frames.
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)$', re.MULTILINE)
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)

# A task's last failure, as the scheduler reports it, and the kinds of failures that concern machines.
_LOST_TASK = re.compile(r"most recent failure: (?:Lost task [^(]*\(TID \d+\) )?\((?P<where>[^)]*)\): (?P<why>[^\n]+)")
_OF_MACHINES = re.compile(
    r"ExecutorLostFailure|FetchFailed|Cannot run program|Python worker (?:exited|failed)|OutOfMemoryError"
)
_OF_TABLES = re.compile(
    r"\bFAILED_READ_FILE\b|\bFileNotFoundException\b|\bNoSuchFileException\b|\bis not a Parquet file\b"
    r"|\biceberg\.exceptions\.(?:NotFoundException|NoSuchTableException|ValidationException|BadRequestException)\b"
    r"|\bJsonParseException\b|\bJsonEOFException\b|\bInvalidProtocolException\b|\bDELTA_[A-Z_]+\b"
)
_JAVA_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+[A-Z][\w$]*")

# Spark's errors for a checkpoint that two queries write (the second pattern applies if both queries write an entry at
# the same moment), the sink's error in a Python worker, and Delta's errors for a commit that conflicts with another
# commit.
_CHECKPOINT_OVERTAKEN = re.compile(
    r"\bCONCURRENT_STREAM_LOG_UPDATE\b|\bMultiple streaming queries are concurrently using\b"
    r"|\b(?:Spark)?ConcurrentModificationException\b"
)
_TABLE_OVERTAKEN = re.compile(
    r"\bspark_sink\.errors\.Overtaken: another sink or program wrote (?P<what>.+) at the same time"
)
_COMMIT_OVERTAKEN = re.compile(r"\bio\.delta\.exceptions\.\w+")

# The number of stack frames within which the location can be found.
_FRAMES = 3


def failure(error: Exception) -> FatalError:
    """Convert a PySpark error to the sink's error. The batch is not acknowledged."""
    text = str(error)
    if table := _TABLE_OVERTAKEN.search(text):
        return Overtaken(table["what"])
    if _COMMIT_OVERTAKEN.search(text):
        return Overtaken("a table")
    return FatalError(f"a Spark job failed: {cause(text) or type(error).__name__}")


def overtaken(error: Exception, checkpoint: str) -> Overtaken | None:
    """Return the sink's error if another query took over the checkpoint, and None for any other error."""
    return Overtaken(f"the checkpoint {checkpoint}") if _CHECKPOINT_OVERTAKEN.search(str(error)) else None


def concerns_one_table(error: Exception) -> bool:
    """Return whether Spark's error is about a table, its statement or its files. Any other error may come from the
    cluster.
    """
    return isinstance(error, AnalysisException) or _OF_TABLES.search(str(error)) is not None


def concerns_statement(error: Exception) -> bool:
    """Return whether Spark's error for a statement that creates or changes one table is about that table. Such a
    statement has few tasks, or none. Other tables are therefore affected only if a machine or the JVM is lost.
    """
    lost = _LOST_TASK.search(str(error))
    return not isinstance(error, Py4JNetworkError) and not (lost and _OF_MACHINES.search(lost["why"]))


def cause(text: str) -> str | None:
    """Return the cause from the text of such an error. Return None if no part of the text may be repeated."""
    frames = list(_FRAME.finditer(text))
    if frames:
        return _in_python(text, frames)
    lost = _LOST_TASK.search(text)
    if lost and _OF_MACHINES.search(lost["why"]):
        return f"{lost['why'].strip()} ({lost['where']})"
    classes = _JAVA_CLASS.findall(lost["why"] if lost else text)
    return str(classes[0]) if classes else None


def _in_python(text: str, frames: list[re.Match[str]]) -> str:
    raised = _RAISED.search(text, frames[-1].end() + 1)
    # The source line, indented, is between the last frame and the error.
    kind, message = (raised["kind"], raised["message"]) if raised else ("an error", None)
    places = ", ".join(_places(frames[-_FRAMES:]))
    if raised and message and kind.rpartition(".")[2] in _TELLING:
        told = " ".join((message, *_further_lines(text[raised.end() + 1 :])))
        return f"{kind}: {told} (in a Python worker, at {places})"
    return f"{kind} in a Python worker, at {places}; the message is omitted because it may contain row values"


def _further_lines(text: str) -> Iterator[str]:
    """Return the later lines of a message that deltalake splits into lines, from general to specific."""
    return (line.strip() for line in takewhile(lambda line: line.strip(), text.splitlines()))


def _places(frames: list[re.Match[str]]) -> Iterator[str]:
    for frame in frames:
        folders = frame["file"].split("/")
        yield f"{'/'.join(folders[-2:])}:{frame['line']}"


def is_metrics_fault(query: StreamingQuery) -> bool:
    """Return whether a query failed with a fault in Spark 4.1.1 that only a restart fixes (apache/spark PR 56526).

    A restarted query that replays a batch fails in this way after the batch has been acknowledged.
    """
    died: Any = query._jsq.exception()
    cause = died.get().cause() if died.isDefined() else None
    if cause is None or cause.getClass().getName() != "java.lang.NullPointerException":
        return False
    frames = cause.getStackTrace()
    where = [frame.getClassName() for frame in frames[:1] if frame.getMethodName() == "metrics"]
    return any("KafkaMicroBatchStream" in name for name in where)
