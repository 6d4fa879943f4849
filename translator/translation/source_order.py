"""`order: native`: positions by the source's own sequence instead of by arrival (docs/design.md §4.4).

For topics over which a tool spreads the changes of one row: their offsets do not order them, its sequence does. A
sequence compares inside one task only, so that the task is part of the scope.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta

from cdc_core.position import native_scope, position
from translator.errors import ConfigError, ErrorCode, MessageError, quote
from translator.message import Dialect, Message, RowChange, Sequenced

_SNAPSHOT = "r"
_UNIX = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class NativeOrder:
    """The positions of one source.

    Args:
        epochs: rising times; from each of them on, sequences are beyond all that were before it.
        task: of messages that do not name theirs.

    Raises:
        ConfigError: the dialect has no sequence that orders changes.
    """

    def __init__(self, source: str, dialect: Dialect, epochs: Sequence[datetime] = (), task: str | None = None) -> None:
        if not isinstance(dialect, Sequenced):
            raise ConfigError(
                f"source {source}: order: native is not for {dialect.name}, whose messages have no sequence of a task"
            )
        self._source = source
        self._pattern = re.compile(dialect.native_position, re.ASCII)
        self._epochs = [(epoch - _UNIX) // timedelta(microseconds=1) for epoch in epochs]
        self._task = task

    def place(self, message: Message, n: int, change: RowChange) -> tuple[str, str]:
        """`pos` and `pos_scope` of a row.

        Raises:
            MessageError: it has no sequence, an irregular one, or nothing says which task it is of.
        """
        epoch = bisect_right(self._epochs, message.timestamp_ms * 1000)
        native = 0 if change.op == _SNAPSHOT else self._sequence(change.pos_native)
        scope = native_scope(self._source, self._task_of(change))
        return position(message.offset, n, native=native, epoch=epoch), scope

    def _sequence(self, native: str | None) -> int:
        if native is None:
            reason = "a change without a sequence, by which order: native orders; let the task send it, or use arrival"
            raise MessageError(ErrorCode.MISSING_FIELD, reason)
        if not self._pattern.fullmatch(native):
            reason = f"{quote(native)} is no sequence of the form that order: native needs; use order: arrival"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)
        return int(native)

    def _task_of(self, change: RowChange) -> str:
        task = change.writer.task
        if task is None and self._task is None:
            reason = "nothing says which task the change is of, whose sequence orders it; set the source's task"
            raise MessageError(ErrorCode.MISSING_FIELD, reason)
        if task is not None and self._task not in (None, task):
            reason = f"a change of task {quote(task)}; the source declares task {quote(self._task)}"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)
        return str(task or self._task)
