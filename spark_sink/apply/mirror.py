"""Turn the events between two truncates into rows to write to a mirror. Values that do not fit are omitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.transaction import Aside
from spark_sink.apply.mirror_columns import EARLIEST, LATEST, ColumnFold, fold_in_columns
from spark_sink.errors import Reason
from spark_sink.events.arrow_values import Values, column, fits, image_value
from spark_sink.events.event_columns import EventColumns, latest
from spark_sink.events.grouping import typed_keys
from spark_sink.events.image_table import NotInColumns
from spark_sink.events.images import ImageReader, Unreadable
from spark_sink.events.quarantine import Rejected
from spark_sink.model.event import (
    DUPLICATE,
    TRUNCATED,
    Event,
    Key,
    Latest,
)
from spark_sink.model.fold import Folded, fold
from spark_sink.model.row import (
    NOTHING,
    Content,
    IsRepeat,
    Row,
    RowMark,
)
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import Plan, TableShape
from spark_sink.tables.changes import TableChanges
from spark_sink.tables.meta_columns import (
    COMMIT_TS,
    DELETED_AT,
    INCOMPLETE,
    POS,
    SCOPE,
    STATE,
)
from spark_sink.tables.protocols import MirrorTable


@dataclass(frozen=True, slots=True)
class MirrorChanges:
    """The rows that a segment changes in a mirror, and the events that the mirror rejects.

    Args:
        stale: the number of events that had no effect, by reason. The reason `late` means that a later event arrived
            first.
        scope_changes: the number of times a row moved to another scope.
        deleted: the number of deleted rows.
        undecided: see `Folded`.
    """

    changes: TableChanges
    rejected: list[Rejected]
    stale: Counter[str]
    late: int
    scope_changes: int
    deleted: int
    undecided: int = 0

    @classmethod
    def of(cls, changes: TableChanges, rejected: list[Rejected], folded: Folded) -> MirrorChanges:
        deleted = sum(1 for row in folded.rows.values() if not row.exists)
        outlived = [Rejected(event.index, Reason.ROW_OUTLIVED, OUTLIVED) for event in folded.outlived]
        counts = (folded.stale, folded.late, folded.scope_changes, deleted, folded.undecided)
        return cls(changes, rejected + outlived, *counts)


OUTLIVED = "according to the source's commit times, another scope has deleted the row since"


class UnwritableRows(Exception):
    """Rows that cannot be written because a value does not fit its column, by key."""

    def __init__(self, keys: set[Key]) -> None:
        self.keys = keys


def fold_into_changes(events: Sequence[Event], table: MirrorTable, plan: Plan, *, soft: bool = False) -> MirrorChanges:
    """Fold the events into the stored rows, column by column where possible, and otherwise one by one.

    Args:
        soft: deleted rows keep their values.

    Raises:
        Refused: the table cannot accept more events.
    """
    if isinstance(events, EventColumns) and not soft:
        with suppress(NotInColumns):
            folded = fold_in_columns(events, table, plan)
            if not folded.others:
                return _with_others(folded, None)
            return _with_others(folded, fold_one_by_one(folded.others, table, plan, latest(events), soft=soft))
    return fold_one_by_one(events, table, plan, latest(events), soft=soft)


def _with_others(folded: ColumnFold, others: MirrorChanges | None) -> MirrorChanges:
    """Combine the two results, which have no rows in common."""
    counted = ((TRUNCATED, folded.truncated), (DUPLICATE, folded.duplicates))
    stale = Counter({reason: count for reason, count in counted if count})
    if others is None:
        return MirrorChanges(folded.changes, [], stale, 0, 0, folded.deleted)
    parts = (folded.changes, others.changes)
    kept = {
        name: pa.concat_arrays([part.kept.get(name, pa.array([True] * len(part.rows), pa.bool_())) for part in parts])
        for name in dict.fromkeys(name for part in parts for name in part.kept)
    }
    rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    changes = TableChanges(rows, kept, all(part.inserts_only for part in parts))
    deleted = folded.deleted + others.deleted
    counts = (stale + others.stale, others.late, others.scope_changes, deleted, others.undecided)
    return MirrorChanges(changes, others.rejected, *counts)


def fold_one_by_one(
    events: Sequence[Event], table: MirrorTable, plan: Plan, reached: Mapping[str, Latest], *, soft: bool
) -> MirrorChanges:
    """Fold the events into the stored rows one by one. This is the specification for `fold_in_columns`.

    All values since a row's last reset are checked, even values that a later event replaces, because a batch that ended
    between the two events would have written them. If a value does not fit, every event for its row is examined. An
    invalid event is reduced to the values that fit, which marks its row as incomplete, and the segment is folded again.

    Args:
        reached: the position that each scope has reached. Events for other rows are included.
        soft: deleted rows keep their values.

    Raises:
        Refused: the table cannot accept more events.
    """
    keys, wrong = typed_keys(events, plan.shape)
    rejected: list[Rejected] = []
    if wrong:
        rejected = [Rejected(e.index, *why) for e in events if (why := wrong.get(e.key) or wrong.get(e.key_old or ""))]
        keyless = {one.event for one in rejected}
        events = [event for event in events if event.index not in keyless]
    reader = ImageReader(plan)
    marks = table.marks(set(keys.values()))
    while True:
        folded = fold(events, keys, marks, table.floors, reached, _is_repeat(reader, plan.shape, table))
        try:
            last = last_states(folded.rows) if soft else {}
            return MirrorChanges.of(changes(folded.rows, marks, reader, plan.shape, table, last), rejected, folded)
        except UnwritableRows as unfit:
            suspects = _suspects(events, keys, folded, unfit.keys)
            found = [one for event in suspects if (one := reader.examined(event)) is not None]
            if not found:
                raise AssertionError("a row does not fit, although each of its images does") from None
            rejected += [one.rejected for one in found]
            instead = {one.instead.index: one.instead for one in found}
            events = [instead.get(event.index, event) for event in events]


def last_states(rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """Return the states of the deleted rows before their deletes."""
    return {key: row.last for key, row in rows.items() if not row.exists and row.last is not None}


def changes(
    folded: Mapping[Key, Row],
    marks: Mapping[Key, RowMark],
    reader: ImageReader,
    shape: TableShape,
    table: MirrorTable,
    last: Mapping[Key, Row] = MappingProxyType({}),
) -> TableChanges:
    """Return the folded rows as columns to write. `last` has the states of the deleted rows before their deletes."""
    shown = {**folded, **last} if last else folded
    contents = _contents(shown, reader, shape)
    rows = list(shown.items())
    moved = {i: row.stored for i, (key, row) in enumerate(rows) if row.stored is not None and row.stored != key}
    bases = table.rows(set(moved.values())) if moved else {}
    sent = [content.sent for content in contents]
    # A whole image sets every column, so there is no need to check for unchanged values.
    partial = [(i, image, *rows[i]) for i, image in enumerate(sent) if len(image) < len(shape.types)]
    staying = [(i, image, row) for i, image, key, row in partial if row.stored == key]
    unfit: set[Key] = set()
    columns: dict[str, pa.Array] = {
        name: pa.array([key[i] for key, _ in rows], arrow_type(shape.types[name])) for i, name in enumerate(shape.key)
    }
    kept: dict[str, pa.Array] = {}
    for name, sql in shape.types.items():
        if name in columns:
            continue
        values = [image.get(name) for image in sent]
        try:
            array = column(values, sql)
        except ValueError:
            unfit |= {key for (key, _), value in zip(rows, values, strict=True) if not fits(value, sql)}
            continue
        left = {i for i, image, row in staying if name not in image and row.keeps(name)}
        if left:
            written = [True] * len(rows)
            for i in left:
                written[i] = False
            kept[name] = pa.array(written)
        missing = {i: bases[base][name] for i, base in moved.items() if name not in sent[i] and rows[i][1].keeps(name)}
        columns[name] = _filled(array, missing) if missing else array
    if unfit:
        raise UnwritableRows(unfit)
    asides = _asides(folded, reader, shape, table)
    own = _meta_columns(list(folded.items()), contents, asides, shape)
    written_rows = pa.table({**{name: columns[name] for name in shape.types}, **own})
    return TableChanges(written_rows, kept, inserts_only=not any(key in marks for key in folded))


def _contents(folded: Mapping[Key, Row], reader: ImageReader, shape: TableShape) -> list[Content]:
    contents = []
    unfit = set()
    images: list[Mapping[str, Any]] = []
    of_rows: list[Key] = []

    def read(event: Event) -> Mapping[str, Any]:
        values = reader(event)
        images.append(values)
        return values

    for key, row in folded.items():
        before = len(images)
        try:
            content = row.content(read)
        except Unreadable:
            unfit.add(key)
            del images[before:]
            continue
        contents.append(content)
        if len(images) == before + 1 and images[before].keys() <= content.sent.keys():
            images.pop()  # every value is checked when it is written
        of_rows += [key] * (len(images) - before)
    unfit |= _replaced_unfit(images, of_rows, shape)
    if unfit:
        raise UnwritableRows(unfit)
    return contents


def _replaced_unfit(images: Sequence[Mapping[str, Any]], of_rows: Sequence[Key], shape: TableShape) -> set[Key]:
    """Return the rows that have several images and at least one value that does not fit."""
    values: dict[str, tuple[list[Key], list[Any]]] = {}
    for key, image in zip(of_rows, images, strict=True):
        for name, value in image.items():
            keys, found = values.setdefault(name, ([], []))
            keys.append(key)
            found.append(value)
    unfit: set[Key] = set()
    for name, (keys, found) in values.items():
        sql = shape.types[name]
        if name not in shape.key and not _fit(found, sql):
            unfit |= {key for key, value in zip(keys, found, strict=True) if not fits(value, sql)}
    return unfit


def _fit(values: Values, sql: str) -> bool:
    try:
        column(values, sql)
    except ValueError:
        return False
    return True


def _asides(folded: Mapping[Key, Row], reader: ImageReader, shape: TableShape, table: MirrorTable) -> dict[Key, Aside]:
    """Return the rows that are in quarantine when the batch ends, in storage format."""
    pending = {key: row.aside for key, row in folded.items() if row.aside is not None}
    if not pending:
        return {}
    rows = {key: aside.row for key, aside in pending.items()}
    bases = table.rows({row.stored for row in rows.values() if row.stored is not None})
    asides: dict[Key, Aside] = {}
    unfit: set[Key] = set()
    for key, row in rows.items():
        try:
            values = _values(row, reader, shape, bases)
        except (Unreadable, ValueError):
            unfit.add(key)
            continue
        asides[key] = Aside(pending[key].transaction, values, row.incomplete, pending[key].inserted)
    if unfit:
        raise UnwritableRows(unfit)
    return asides


def _values(row: Row, reader: ImageReader, shape: TableShape, bases: Mapping[Key, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row's values without its key, in the format that images use. A column without a value is NULL.

    Raises:
        Unreadable: one of the row's images does not match its schema.
        ValueError: a value does not fit its column.
    """
    stored = bases[row.stored] if row.stored is not None else {}
    sent = row.content(reader).sent
    values: dict[str, Any] = {}
    for name in (name for name in shape.types if name not in shape.key):
        kept = image_value(stored[name]) if name in stored and row.keeps(name) else None
        (value,) = column([sent.get(name, kept)], shape.types[name]).to_pylist()
        values[name] = image_value(value)
    return values


def _is_repeat(reader: ImageReader, shape: TableShape, table: MirrorTable) -> IsRepeat:
    def is_repeat(row: Row, aside: Row) -> bool:
        bases = table.rows({one.stored for one in (row, aside) if one.stored is not None})
        try:
            return _values(row, reader, shape, bases) == _values(aside, reader, shape, bases)
        except (Unreadable, ValueError):
            return False  # writing the row detects the invalid value

    return is_repeat


def _meta_columns(
    rows: Sequence[tuple[Key, Row]], contents: Sequence[Content], asides: Mapping[Key, Aside], shape: TableShape
) -> dict[str, pa.Array]:
    for content in contents:
        if content.columns:
            for name in shape.key:
                content.columns.pop(name, None)
    rows_and_contents = zip(rows, contents, strict=True)
    # A deleted row's columns have no positions. Any values that the row still contains are from before the delete.
    marks = [
        row.mark(content.columns if row.exists else {}, asides.get(key)) for (key, row), content in rows_and_contents
    ]
    deleted = [None if row.exists else row.deleted_at for _, row in rows]
    return {
        SCOPE: pa.array([mark.scope for mark in marks], pa.string()),
        POS: pa.array([mark.pos for mark in marks], pa.string()),
        STATE: pa.array([_state(mark) for mark in marks], pa.string()),
        INCOMPLETE: pa.array([mark.incomplete for mark in marks], pa.bool_()),
        DELETED_AT: instant(deleted),
        COMMIT_TS: instant([mark.committed for mark in marks]),
    }


def instant(times: Sequence[int | None]) -> pa.Array:
    """Return event times as a column. A time that readers do not support is replaced by the nearest supported time."""
    clamped = [None if time is None else readable(time) for time in times]
    return pa.array(clamped, pa.timestamp("us", "UTC"))


def readable(time: int) -> int:
    return min(max(time, EARLIEST), LATEST)


def _state(mark: RowMark) -> str | None:
    return (
        None
        if mark.memory is NOTHING or mark.memory == NOTHING
        else msgspec.json.encode(mark.memory, order="deterministic").decode()
    )


def _filled(array: pa.Array, stored: Mapping[int, Any]) -> pa.Array:
    """Return the column with the stored value for each moved row whose image has no value for this column."""
    mask = pa.array([i in stored for i in range(len(array))])
    return pc.if_else(mask, pa.array([stored.get(i) for i in range(len(array))], array.type), array)


def _suspects(events: Sequence[Event], keys: Mapping[str, Key], folded: Folded, unfit: set[Key]) -> list[Event]:
    """Return every event that may have caused an unfit row: events for the row, and for rows that moved to its key."""
    found = [folded.rows[key] for key in unfit]
    asides = [row.aside.row for row in found if row.aside is not None]
    rows = [*found, *(row.last for row in found if row.last is not None), *asides]
    suspects = {image.event.index: image.event for row in rows for image in row.images}
    suspects |= {event.index: event for event in events if keys[event.key] in unfit}
    return [event for _, event in sorted(suspects.items())]
