"""Delete the rows that a reload did not contain. They are remembered as deleted (docs/sink-design.md, R15).

Rows can be selected by time, if nothing has written them since then, or by position, if theirs is lower.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from deltalake.exceptions import DeltaError

from cdc_core.position import epoch, position
from spark_sink.apply.history import NO_VALUES, patch_versions
from spark_sink.apply.mirror import changes, last_states
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events.images import ImageReader
from spark_sink.model.event import Event, Key
from spark_sink.model.fold import fold
from spark_sink.schema.evolution import DEFAULTS, evolve
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.protocols import HistoryTable, MirrorTable

# An epoch, or a complete position (docs/design.md §4.4).
_POSITION = re.compile(r"\d{4}(\.\d{38}\.\d{19}\.\d{6})?")

# A position with this suffix sorts just before the next position, because all positions have the same width.
_JUST_AFTER = "+"


class Swept(NamedTuple):
    """The rows to delete, each with the scope that wrote it last, and the delete's position in each scope. Events
    before this position do not bring the rows back.
    """

    keys: Mapping[Key, str]
    positions: Mapping[str, str]


def sweep(table: MirrorTable, before: str, as_of: Callable[[datetime], MirrorTable | None], *, soft: bool) -> int:
    """Delete the rows, and return how many were deleted. If Spark writes the table, this only requests the delete
    (`MirrorTable.orders`).

    Args:
        before: a position, an epoch, or an ISO 8601 time with its UTC offset.
        as_of: returns the table at that time, or None if it did not exist.
        soft: deleted rows keep their values.

    Raises:
        FatalError: `before` has an invalid format, or does not determine which rows to delete.
    """
    said = parse_before(before)
    found = _by_position(table, said) if isinstance(said, str) else _by_time(table, said, as_of)
    return _delete(table, found, soft=soft)


def sweep_unchanged(table: MirrorTable | HistoryTable, before: MirrorTable | HistoryTable, *, soft: bool) -> int:
    """Delete the rows whose position has not changed since an earlier state of the table, and return how many were
    deleted. See `sweep`.
    """
    swept = _unchanged(table, before.written(), reached_positions(before))
    if isinstance(table, MirrorTable):
        return _delete(table, swept, soft=soft)
    for scope, pos in swept.positions.items():
        _end_versions(table, {key for key, one in swept.keys.items() if one == scope}, scope, pos)
    return len(swept.keys)


def reached_positions(table: MirrorTable | HistoryTable) -> Mapping[str, str]:
    """Return the greatest position in each scope."""
    return table.max_positions() if isinstance(table, MirrorTable) else table.greatest()


def _end_versions(table: HistoryTable, keys: Collection[Key], scope: str, pos: str) -> None:
    if keys:
        now = time.time_ns() // 1000
        texts = {str(number): key for number, key in enumerate(keys)}
        deletes = [Event(0, "d", text, None, scope, pos, NO_VALUES, False, False, None, now) for text in texts]
        table.write(patch_versions(deletes, texts, {}, table, table.shape), False)


def _delete(table: MirrorTable, swept: Swept, *, soft: bool) -> int:
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
    last = last_states(rows) if soft else {}
    table.write(changes(rows, marks, ImageReader(plan), plan.shape, table, last)._replace(at=now))
    return len(rows)


def parse_before(before: str) -> str | datetime:
    """Parse a time. A position or an epoch is returned as text.

    Raises:
        ConfigError: the format is invalid, or the time is in the future.
    """
    if _POSITION.fullmatch(before):
        return before
    try:
        moment = datetime.fromisoformat(before)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConfigError(
            f"{before!r} is not a position, a four-digit epoch, or a time such as 2026-01-31T12:00:00+00:00"
        )
    if moment > datetime.now(UTC):
        raise ConfigError(f"{before} is in the future")
    return moment


def _by_position(table: MirrorTable, before: str) -> Swept:
    """Select rows by a position or an epoch. A position is valid only in one scope. An epoch is valid in all scopes,
    because it rises in all of them.
    """
    written = table.written()
    scopes = sorted({scope for scope, _ in written.values()})
    if len(scopes) > 1 and before != epoch(before):
        raise FatalError(
            "a position belongs to one scope, but several scopes have written to the table "
            f"({', '.join(scopes)}); use a time instead"
        )
    floor = before if before != epoch(before) else position(0, 0, epoch=int(before))
    keys = {key: scope for key, (scope, pos) in written.items() if pos < floor}
    return Swept(keys, dict.fromkeys(scopes, floor))


def _by_time(table: MirrorTable, moment: datetime, as_of: Callable[[datetime], MirrorTable | None]) -> Swept:
    """Select the rows whose position has not changed since the given moment."""
    then = as_of(moment)
    if then is None:
        return Swept({}, {})
    try:
        written, reached = then.written(), then.max_positions()
    except (DeltaError, OSError) as error:
        raise FatalError(
            f"the table's files as of {moment.isoformat()} have been removed (maintenance.keep_days): {reason(error)}"
        ) from None
    return _unchanged(table, written, reached)


def _unchanged(
    table: MirrorTable | HistoryTable, written: Mapping[Key, tuple[str, str]], reached: Mapping[str, str]
) -> Swept:
    """Select the rows whose position has not changed since an earlier state.

    Args:
        written: the rows at that time, each with its scope and its position.
        reached: the greatest position in each scope at that time.
    """
    keys = {key: scope for key, (scope, pos) in table.written().items() if written.get(key) == (scope, pos)}
    return Swept(keys, {scope: pos + _JUST_AFTER for scope, pos in reached.items()})
