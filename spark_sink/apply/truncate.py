"""Truncates, stored as one floor per scope. The table ignores all events up to the floor (docs/sink-design.md, R14)."""

from __future__ import annotations

import msgspec

from cdc_core.position import is_in_order
from spark_sink.apply.mirror import changes, readable
from spark_sink.errors import Reason, Refused
from spark_sink.events.images import ImageReader
from spark_sink.events.shared_tables import of_one_table
from spark_sink.model.event import (
    Event,
)
from spark_sink.model.fold import fold
from spark_sink.schema.evolution import Plan
from spark_sink.schema.table_spec import SOURCE
from spark_sink.tables.changes import Deletion, Marker
from spark_sink.tables.protocols import MirrorTable


def truncate(
    event: Event, table: MirrorTable, plan: Plan, marker: Marker, now: int, *, all_scopes: bool, soft: bool = False
) -> int:
    """Delete the rows that were written before the truncate, and return the number of commits.

    It stores the floors first, and then deletes the rows below them. After a crash between the two steps, the repeated
    batch finds the floors and deletes the remaining rows. A repeated truncate deletes nothing, because its floor is
    already stored.

    Args:
        now: the time of writing (microseconds, UTC).
        all_scopes: whether to delete the rows that other scopes have written so far, too.
        soft: whether to keep the rows and mark them as deleted.

    Raises:
        Refused: other scopes feed the table, and the configuration does not say whether the truncate affects their
            rows.
    """
    commits = 0
    if event.pos > table.floors.get(event.scope, ""):
        reached = {scope: pos for scope, pos in table.max_positions().items() if scope != event.scope}
        if SOURCE in table.shape.types:
            reached = {scope: pos for scope, pos in reached.items() if of_one_table(scope, event.scope)}
        if reached and not all_scopes:
            raise Refused(
                Reason.TRUNCATE_SCOPES,
                f"one scope was truncated, but {1 + len(reached)} scopes write to the table; set tables.truncate to "
                "all_scopes if each truncate applies to the whole table",
            )
        reached[event.scope] = event.pos
        # Never lower a floor. Another scope's floor can be above the positions of its stored rows.
        higher = {scope: pos for scope, pos in reached.items() if pos > table.floors.get(scope, "")}
        table.raise_floors({**table.floors, **higher})
        commits += 1
    if not is_in_order(event.scope):
        commits += _cut_short(event, table, plan, now)
    if not soft:
        return commits + table.clear(marker)
    committed = None if event.committed is None else readable(event.committed)
    return commits + table.soft_delete_below_floor(Deletion(readable(event.ts), committed, now), marker)


def _cut_short(event: Event, table: MirrorTable, plan: Plan, now: int) -> bool:
    """If a row was patched after the truncate, remove its values from before the truncate, as a late delete does."""
    keys = {str(number): key for number, key in enumerate(sorted(table.rows_spanning_floor(event.scope), key=repr))}
    if not keys:
        return False
    floor = table.floors[event.scope]
    deletes = [msgspec.structs.replace(event, op="d", key=text, key_old=None, after=None, pos=floor) for text in keys]
    marks = table.marks(set(keys.values()))
    rows = fold(deletes, keys, marks, {}).rows
    table.write(changes(rows, marks, ImageReader(plan), plan.shape, table)._replace(at=now))
    return True
