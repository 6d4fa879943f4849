"""Convert the events between two truncates to versions to write to a history, and a truncate to versions to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cdc_core.position import is_in_order
from spark_sink.apply.mirror import OUTLIVED, instant, readable
from spark_sink.errors import Reason, Refused
from spark_sink.events.arrow_values import column, image_value
from spark_sink.events.event_columns import latest
from spark_sink.events.grouping import typed_keys
from spark_sink.events.images import ImageReader
from spark_sink.events.quarantine import Rejected
from spark_sink.events.shared_tables import of_one_table
from spark_sink.events.typed_events import entries
from spark_sink.model.event import (
    GAP,
    Event,
    Key,
    gap,
)
from spark_sink.model.fold import check_epoch
from spark_sink.model.row import has_ended
from spark_sink.model.version_timeline import TakenKey, Timeline, Truncate, Values, Version
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import Plan, TableShape
from spark_sink.schema.table_spec import SOURCE
from spark_sink.tables.changes import Marker
from spark_sink.tables.meta_columns import (
    CURRENT,
    END_OP,
    END_POS,
    END_SCOPE,
    END_TS,
    INCOMPLETE,
    OP,
    POS,
    SCOPE,
    SET,
    START_TS,
    TURN,
)
from spark_sink.tables.protocols import HistoryTable


@dataclass(slots=True)
class HistoryChanges:
    """The versions that a segment writes to a history. `rows` are new and changed versions."""

    rows: pa.Table
    adds_only: bool
    rejected: list[Rejected]
    stale: Counter[str] = field(default_factory=Counter)
    late: int = 0
    scope_changes: int = 0
    undecided: int = 0


def build_versions(events: Sequence[Event], table: HistoryTable, plan: Plan) -> HistoryChanges:
    """Return the versions that result from the events.

    Raises:
        Refused: the table cannot accept more events.
    """
    shape = plan.shape
    keys, wrong = typed_keys(events, shape)
    rejected = [Rejected(e.index, *why) for e in events if (why := wrong.get(e.key) or wrong.get(e.key_old or ""))]
    keyless = {one.event for one in rejected}
    events = [event for event in events if event.index not in keyless]
    images = [event for event in events if event.op not in (GAP, "d")]
    types = {name: sql for name, sql in shape.types.items() if name not in shape.key}
    found = entries(images, ImageReader(plan), types, partly=True)
    values = _after_images(found.events, found.columns, found.sets)
    instead = {event.index: event for event in found.events}
    unreadable = {one.event for one in found.rejected} - instead.keys()
    events = [gap(one) if one.index in unreadable else instead.get(one.index, one) for one in events]
    since: dict[str, str] = {}
    for event in events:
        since[event.scope] = min(event.pos, since.get(event.scope, event.pos))
    taken_keys = [(_of_types(one.key, shape), one) for one in table.taken_keys]
    taken = {key: one for key in keys.values() for name, one in taken_keys if name == _in_images(key)}
    for one in taken.values():
        # The older version ended where the next newer version begins.
        scope = one.transaction.scope
        since[scope] = min(one.pos[:-1], since.get(scope, one.pos))
    stored = table.versions(set(keys.values()), since)
    timelines = _Timelines(keys, stored, table.truncates, taken)
    for event in events:
        timelines.take(event, values.get(event.index, {}))
    changed = timelines.changed()
    places = {key: {version.place for version in versions} for key, versions in stored.items()}
    reached = latest(events)
    others = (one for one in table.taken_keys if one not in taken.values())
    still_open = (one for one in (*others, *timelines.taken) if not has_ended(one.transaction, one.pos, reached))
    pending = tuple(still_open)
    if pending and pending != tuple(table.taken_keys):
        table.keep_taken_keys(pending)
    adds_only = all(version.place not in places.get(key, ()) for key, version in changed)
    return HistoryChanges(
        version_rows(changed, shape),
        adds_only,
        rejected + found.rejected + timelines.outlived,
        timelines.stale,
        timelines.late,
        timelines.scope_changes,
        timelines.undecided,
    )


# The image for a patch that only marks a row as incomplete.
NO_VALUES = b"{}"


def _told(version: Version) -> dict[str, Any]:
    return {name: image_value(value) for name, value in version.values.items() if value is not None}


def _in_images(key: Key) -> Key:
    return tuple(map(image_value, key))


def _of_types(key: tuple[Any, ...], shape: TableShape) -> tuple[Any, ...]:
    """Convert a stored key to the types that the key columns have now, in the form that images use."""
    typed = (column([value], shape.types[name]) for name, value in zip(shape.key, key, strict=True))
    return tuple(image_value(array.to_pylist()[0]) for array in typed)


def patch_versions(
    patches: Sequence[Event], keys: Mapping[str, Key], values: Values, table: HistoryTable, shape: TableShape
) -> pa.Table:
    """Return the versions for patches that change many rows at one position.

    Args:
        keys: the typed key for each key text in the patches.
        values: the values in each image, by table column, or NO_VALUES.
    """
    if not patches:
        return version_rows([], shape)
    scope, pos = patches[0].scope, patches[0].pos
    stored = table.versions(set(keys.values()), {scope: pos})
    timelines = _Timelines(keys, stored, table.truncates, {})
    typed = {name: column([value], shape.types[name]).to_pylist()[0] for name, value in values.items()}
    for patch in patches:
        timelines.take(patch, {} if patch.after == NO_VALUES else typed)
    return version_rows(timelines.changed(), shape)


def _after_images(
    events: Sequence[Event], columns: Mapping[str, pa.Array], sets: Sequence[list[str]]
) -> dict[int, Values]:
    """Return each event's values, keyed by its index."""
    plain = {name: array.to_pylist() for name, array in columns.items()}
    return {
        event.index: {name: plain[name][number] for name in names}
        for number, (event, names) in enumerate(zip(events, sets, strict=True))
    }


class _Timelines:
    """The timelines for the rows in a segment. Events are added to these timelines."""

    def __init__(
        self,
        keys: Mapping[str, Key],
        stored: Mapping[Key, Sequence[Version]],
        truncates: Sequence[Truncate],
        taken: Mapping[Key, TakenKey],
    ) -> None:
        self._keys = keys
        self._truncates = truncates
        self._taken = dict(taken)
        self._lines = {key: Timeline(stored.get(key, ()), truncates) for key in keys.values()}
        self.stale: Counter[str] = Counter()
        self.late = self.scope_changes = self.undecided = 0
        self.outlived: list[Rejected] = []

    def changed(self) -> list[tuple[Key, Version]]:
        """Return new and changed versions."""
        found = []
        for key, line in self._lines.items():
            line.settle()
            found += [(key, version) for version in line.versions if version.place in line.changed]
        return found

    def take(self, event: Event, values: Values) -> None:
        """Insert an event at its position. An event that changes a key is inserted in both rows' timelines."""
        key = self._keys[event.key]
        line = self._lines[key]
        old = self._lines[self._keys[event.key_old]] if event.key_old is not None else line
        if event.op == GAP:
            for one in dict.fromkeys((line, old)):
                self._miss(event, one)
        elif old is not line:
            self._move(event, old, line, values)
        elif event.op == "d":
            self._leave(event, line, key)
        elif line.outlives(event):
            self.outlived.append(Rejected(event.index, Reason.ROW_OUTLIVED, OUTLIVED))
        else:
            over = event.op == "c" and (event.tx is not None or event.committed is not None) and line.alive(event)
            sets = None if event.resets else tuple(values)
            self._add(event, line, event.op, sets, values, gap=event.leaves_gaps)
            if over:
                self._taken[key] = TakenKey(_in_images(key), event.transaction, event.pos, inserted=True)

    def _leave(self, event: Event, line: Timeline, key: Key) -> Version | None:
        """End the row with this key, because the row is deleted or gets another key. Return the ended row under the
        same rules as `Row.leave`.
        """
        turn = line.turn_of(event)
        if isinstance(turn, str):
            self.stale[turn] += event.key_old is None
            return None
        taken = self._taken.pop(key, None)
        last = line.versions[-1] if line.versions else None
        is_open = taken is not None and last is not None and (last.scope, last.pos) == (event.scope, taken.pos)
        same = taken.transaction.includes(event.transaction) if taken is not None and is_open else False
        if taken is not None and last is not None and same is not False:
            under = line.before(last.turn, event.scope, taken.pos)
            # If the newer and the older row have equal values, both are the same row, and its insert was sent twice.
            if taken.inserted and under is not None and _told(under) == _told(last):
                same = False
        if taken is not None and last is not None and same:
            left = line.before(last.turn, event.scope, taken.pos)
            self._add(event, line, "u", (), {}, gap=False)  # the newer row stays unchanged
            return left
        if same is None:
            self.undecided += 1
            line.add(Version(turn, event.scope, event.pos, None, (), event.ts, gap=True))
            return None
        left = line.before(turn, event.scope, event.pos)
        self._add(event, line, "d", None, {}, gap=False)
        return left

    @property
    def taken(self) -> Collection[TakenKey]:
        """Return the versions of rows that took over another row's key."""
        return self._taken.values()

    def _move(self, event: Event, old: Timeline, line: Timeline, values: Values) -> None:
        """End the old row and begin the new row. If the event is partial, take missing values from the old row."""
        key, key_old = self._keys[event.key], self._keys[event.key_old or ""]
        before = self._leave(event, old, key_old)
        unsure = event.leaves_gaps
        if not event.resets:
            # If events can arrive in any order, an earlier change to the old row may not have arrived yet.
            unsure = unsure or before is None or before.incomplete or not is_in_order(event.scope)
            values = {**(before.values if before else {}), **values}
        if line.outlives(event):
            self.outlived.append(Rejected(event.index, Reason.ROW_OUTLIVED, OUTLIVED))
            return
        over = line.alive(event)
        self._add(event, line, event.op, None, values, gap=unsure)
        if over:
            self._taken[key] = TakenKey(_in_images(key), event.transaction, event.pos)

    def _miss(self, event: Event, line: Timeline) -> None:
        """Mark the row as incomplete, from a quarantined event until a later event sets the whole row."""
        turn = line.turn_of(event)
        if isinstance(turn, int) and line.before(turn, event.scope, event.pos) is not None:
            line.add(Version(turn, event.scope, event.pos, None, (), event.ts, gap=True))

    def _add(
        self, event: Event, line: Timeline, op: str, sets: tuple[str, ...] | None, values: Values, *, gap: bool
    ) -> None:
        turn = line.turn_of(event)
        if isinstance(turn, str):
            self.stale[turn] += 1
            return
        check_epoch(event, line.greatest(event.scope))
        self.scope_changes += bool(line.versions) and turn != line.versions[-1].turn
        self.late += line.add(Version(turn, event.scope, event.pos, op, sets, event.ts, values, gap))


def end_versions(event: Event, table: HistoryTable, shape: TableShape, marker: Marker, *, all_scopes: bool) -> int:
    """End every version that a truncate affects, and return the number of commits.

    The truncate is stored before the versions are ended, so that late events can see it. After a crash between the two
    steps, the repeated batch ends the remaining versions.

    Raises:
        Refused: other scopes feed the table, and the configuration does not specify whether the truncate affects their
            rows.
    """
    commits = 0
    truncate = next((one for one in table.truncates if (one.scope, one.pos) == (event.scope, event.pos)), None)
    if truncate is None:
        others = {scope: pos for scope, pos in table.greatest().items() if scope != event.scope}
        if SOURCE in shape.types:
            others = {scope: pos for scope, pos in others.items() if of_one_table(scope, event.scope)}
        if others and not all_scopes:
            raise Refused(
                Reason.TRUNCATE_SCOPES,
                f"one scope was truncated, but {1 + len(others)} scopes write to the table; set tables.truncate to "
                "all_scopes if each truncate applies to the whole table",
            )
        for one in table.truncates:
            for scope in others.keys() & one.floors.keys():
                others[scope] = max(others[scope], one.floors[scope])
        truncate = Truncate(event.scope, event.pos, readable(event.ts), {**others, event.scope: event.pos})
        # Truncates are stored in source order. A truncate that arrives late is inserted before the later truncates in
        # its scope.
        later = [one for one in table.truncates if one.scope == event.scope and one.pos > event.pos]
        place = table.truncates.index(later[0]) if later else len(table.truncates)
        table.keep_truncates([*table.truncates[:place], truncate, *table.truncates[place:]])
        commits += 1
    changed: list[tuple[Key, Version]] = []
    late = truncate != table.truncates[-1]
    for key, versions in table.versions(table.rows_spanning_floor(truncate, late=late)).items():
        line = Timeline(versions, table.truncates)
        line.cut(truncate)
        line.settle()
        changed += [(key, version) for version in line.versions if version.place in line.changed]
    if changed:
        table.write(version_rows(changed, shape), False)
        commits += 1
    return commits + table.close(truncate, marker)


def version_rows(versions: Iterable[tuple[Key, Version]], shape: TableShape) -> pa.Table:
    """Return versions as table rows."""
    rows = list(versions)
    found = [version for _, version in rows]
    columns: dict[str, pa.Array] = {}
    for name, sql in shape.types.items():
        values: list[Any] = [version.values.get(name) for version in found]
        if name in shape.key:
            values = [key[shape.key.index(name)] for key, _ in rows]
        columns[name] = pa.array(values, arrow_type(sql))
    ends = [version.end for version in found]
    text = pa.string()
    columns |= {
        SCOPE: pa.array([version.scope for version in found], text),
        POS: pa.array([version.pos for version in found], text),
        TURN: pa.array([version.turn for version in found], pa.int32()),
        OP: pa.array([version.op for version in found], text),
        SET: pa.array([version.stored_sets for version in found], pa.list_(text)),
        START_TS: instant([version.ts for version in found]),
        END_OP: pa.array([end and end.op for end in ends], text),
        END_SCOPE: pa.array([end and end.scope for end in ends], text),
        END_POS: pa.array([end and end.pos for end in ends], text),
        END_TS: instant([end.ts if end else None for end in ends]),
        CURRENT: pa.array([version.current for version in found], pa.bool_()),
        INCOMPLETE: pa.array([version.incomplete for version in found], pa.bool_()),
    }
    return pa.table(columns)
