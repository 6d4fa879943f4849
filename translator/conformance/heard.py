"""Capture everything that a plug-in writes: logs, warnings and output."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def heard() -> Iterator[Callable[[], str]]:
    """Record logs, warnings and output. Return a function that returns everything new since its last call.

    A logger may have handlers of its own, and a plug-in may hold on to an earlier stream. Log records are therefore
    captured when they are created, and the file descriptors are redirected as well.
    """
    texts = io.StringIO()
    with (
        _log_records(texts),
        _descriptors() as written,
        contextlib.redirect_stdout(texts),
        contextlib.redirect_stderr(texts),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")

        def said() -> str:
            found = [texts.getvalue(), *(str(warning.message) for warning in caught), written()]
            texts.seek(0)
            texts.truncate()
            caught.clear()
            return "\n".join(found)

        yield said


@contextlib.contextmanager
def _log_records(texts: io.StringIO) -> Iterator[None]:
    factory, root, formatter = logging.getLogRecordFactory(), logging.getLogger(), logging.Formatter()
    level = root.level

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = factory(*args, **kwargs)
        try:
            texts.write(formatter.format(made))
        except Exception:  # the text does not fit its arguments, so a handler would print both
            texts.write(f"{made.msg} {made.args}")
        return made

    logging.setLogRecordFactory(record)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
        root.setLevel(level)


@contextlib.contextmanager
def _descriptors() -> Iterator[Callable[[], str]]:
    """Redirect the process's standard output and standard error. Return a function that returns new output as text."""
    _flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with tempfile.TemporaryFile() as file:
        to = file.fileno()

        def written() -> str:
            _flush()
            data = os.pread(to, os.fstat(to).st_size, 0)
            if data:
                os.ftruncate(to, 0)
                os.lseek(to, 0, os.SEEK_SET)
            return data.decode(errors="replace")

        try:
            for number in kept:
                os.dup2(to, number)
            yield written
        finally:
            _flush()
            for number, copy in kept.items():
                os.dup2(copy, number)
                os.close(copy)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
