"""Rows that a reload did not bring again: deleted, and remembered as such (docs/sink-design.md, R15).

They are given by a time, before which they were written last, or by a position, before which they lie.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from deltalake.exceptions import DeltaError

from cdc_core.position import epoch, position
from spark_sink.apply.mirror import changes
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events.images import ImageReader
from spark_sink.model.event import Event, Key
from spark_sink.model.fold import fold
from spark_sink.schema.evolution import DEFAULTS, evolve
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.protocols import MirrorTable

# An epoch, or a whole position (docs/design.md §4.4).
_POSITION = re.compile(r"\d{4}(\.\d{38}\.\d{19}\.\d{6})?")

# Behind a position, before the next one: positions have one width.
_JUST_AFTER = "+"


class Swept(NamedTuple):
    """Rows by the scope that wrote them last, and by scope the position at which they are deleted: nothing that the
    scope sent before brings them back."""

    keys: Mapping[Key, str]
    positions: Mapping[str, str]


def sweep(table: MirrorTable, before: str, as_of: Callable[[datetime], MirrorTable | None]) -> int:
    """Delete the rows; how many. Where Spark writes the table, it is ordered (`MirrorTable.orders`), and not done yet.

    Args:
        before: a position, an epoch, or an ISO 8601 time with its offset from UTC.
        as_of: the table as it was; None before it was there.

    Raises:
        FatalError: `before` is none of them, or does not say which rows are meant.
    """
    said = parse_before(before)
    swept = _by_position(table, said) if isinstance(said, str) else _by_time(table, said, as_of)
    if not swept.keys:
        return 0
    now = time.time_ns() // 1000
    texts = {str(number): key for number, key in enumerate(swept.keys)}
    deletes = [
        Event(0, "d", text, None, scope, swept.positions[scope], None, False, False, None, now)
        for text, (_, scope) in zip(texts, swept.keys.items(), strict=True)
    ]
    marks = table.marks(set(swept.keys))
    rows = fold(deletes, texts, marks, {}).rows
    plan = evolve(table.shape, table.shape.table, [], None, [], table.shape.key_sent_as, DEFAULTS)
    table.write(changes(rows, marks, ImageReader(plan), plan.shape, table)._replace(at=now))
    return len(rows)


def parse_before(before: str) -> str | datetime:
    """A position or an epoch as it stands, or a time.

    Raises:
        ConfigError: it is none of them, or a time that has not come yet.
    """
    if _POSITION.fullmatch(before):
        return before
    try:
        moment = datetime.fromisoformat(before)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            f"{before!r} is no position, no epoch of four digits, and no time such as 2026-01-31T12:00:00+00:00"
        )
    if moment > datetime.now(UTC):
        raise ConfigError(f"{before} has not come yet")
    return moment


def _by_position(table: MirrorTable, before: str) -> Swept:
    """A position means something in its own scope only; an epoch in all, because whoever raises it, raises it there."""
    written = table.written()
    scopes = sorted({scope for scope, _ in written.values()})
    if len(scopes) > 1 and before != epoch(before):
        raise FatalError(f"a position is one of its scope, and several fed the table: {', '.join(scopes)}; give a time")
    floor = before if before != epoch(before) else position(0, 0, epoch=int(before))
    keys = {key: scope for key, (scope, pos) in written.items() if pos < floor}
    return Swept(keys, dict.fromkeys(scopes, floor))


def _by_time(table: MirrorTable, moment: datetime, as_of: Callable[[datetime], MirrorTable | None]) -> Swept:
    """Rows whose position is still the one that they had then."""
    then = as_of(moment)
    if then is None:
        return Swept({}, {})
    try:
        written, reached = then.written(), then.max_positions()
    except (DeltaError, OSError) as error:
        raise FatalError(
            f"files of the table as of {moment.isoformat()} are gone (maintenance.keep_days): {reason(error)}"
        ) from None
    keys = {key: scope for key, (scope, pos) in table.written().items() if written.get(key) == (scope, pos)}
    return Swept(keys, {scope: pos + _JUST_AFTER for scope, pos in reached.items()})
