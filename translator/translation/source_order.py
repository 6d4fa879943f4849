"""Order events by the source's own sequence instead of by arrival (`order: native`, docs/design.md §4.4).

This order is for tools that distribute the changes to a row over several partitions. Offsets then do not order the
changes, but the tool's sequence does. Sequences can be compared only within a task, so the task is part of the scope.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from cdc_core.envelope import ChangeEvent
from cdc_core.position import native_scope, position
from translator.errors import ConfigError, ErrorCode, MessageError, quote
from translator.message import Dialect, Message, RowChange, Sequenced

_SNAPSHOT = "r"
_UNIX = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class NativeOrder:
    """Positions for one source.

    Args:
        epochs: times in ascending order. Sequences after each time are later than all sequences before it.
        task: the task for messages that do not include one.

    Raises:
        ConfigError: the dialect has no sequence that orders changes.
    """

    def __init__(self, source: str, dialect: Dialect, epochs: Sequence[datetime] = (), task: str | None = None) -> None:
        if not isinstance(dialect, Sequenced):
            raise ConfigError(
                f"source {source}: order: native is not supported for {dialect.name}, whose messages contain no "
                "task sequence"
            )
        self._source = source
        self._pattern = re.compile(dialect.native_position, re.ASCII)
        self._epochs = [(epoch - _UNIX) // timedelta(microseconds=1) for epoch in epochs]
        self._task = task

    def place(self, message: Message, n: int, change: RowChange) -> tuple[str, str]:
        """Return a row's `pos` and `pos_scope`.

        Raises:
            MessageError: the row's sequence is missing or irregular, or its task is unknown.
        """
        origin_us = message.timestamp_ms * 1000
        return self._place(origin_us, message.offset, n, change.op, change.pos_native, change.writer.task)

    def placed(self, event: ChangeEvent) -> ChangeEvent:
        """Return the event of a row with its position by sequence, given the event with its position by arrival.

        Raises:
            MessageError: the row's sequence is missing or irregular, or its task is unknown.
        """
        offset, n = event.origin.offset, int(event.id.rpartition("/")[2])
        pos, scope = self._place(event.ts_origin_us, offset, n, event.op, event.pos_native, event.task)
        return replace(event, pos=pos, pos_scope=scope)

    def _place(
        self, origin_us: int, offset: int, n: int, op: str | None, pos_native: str | None, task: str | None
    ) -> tuple[str, str]:
        epoch = bisect_right(self._epochs, origin_us)
        native = 0 if op == _SNAPSHOT else self._sequence(pos_native)
        scope = native_scope(self._source, self._task_of(task))
        return position(offset, n, native=native, epoch=epoch), scope

    def _sequence(self, native: str | None) -> int:
        if native is None:
            reason = (
                "the change has no sequence, which order: native requires; configure the task to send one, or use "
                "order: arrival"
            )
            raise MessageError(ErrorCode.MISSING_FIELD, reason)
        if not self._pattern.fullmatch(native):
            reason = f"{quote(native)} is not a valid sequence for order: native; use order: arrival"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)
        return int(native)

    def _task_of(self, task: str | None) -> str:
        if task is None and self._task is None:
            reason = "the change's task is unknown, but order: native requires it; set `task` of the source"
            raise MessageError(ErrorCode.MISSING_FIELD, reason)
        if task is not None and self._task not in (None, task):
            reason = f"the change belongs to task {quote(task)}, but the source declares task {quote(self._task)}"
            raise MessageError(ErrorCode.INVALID_FIELD, reason)
        return str(task or self._task)
