"""Fold mirrors column by column: find each row's last reset, then the last value in each column since that reset.

The result equals the result of `mirror.fold_one_by_one`, which is the specification; test_mirror_columns.py compares
the two. Rows that need more than this are folded one by one: rows with a key change, a scope change, or events from
scopes that do not guarantee an order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.position import is_in_order
from spark_sink.events.arrow_values import counting
from spark_sink.events.event_columns import EventColumns
from spark_sink.events.image_table import NotInColumns, names_column, read_images
from spark_sink.events.row_numbers import RowNumbers, number_rows
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import Plan
from spark_sink.tables.changes import TableChanges
from spark_sink.tables.meta_columns import COMMIT_TS, DELETED_AT, INCOMPLETE, MARK_COLUMNS, POS, SCOPE, STATE
from spark_sink.tables.protocols import MirrorTable

# The timestamp range that every reader supports: years 1 to 9999, in microseconds.
EARLIEST, LATEST = -62135596800_000_000, 253402300799_999_999

# The event fields that the fold compares. Images make up most of an event, so they are not copied. The images that are
# needed are fetched by index at the end.
_LOOKED_AT = ("op", "pos", "full", "withholds", "schema_id", "ts", "committed")

_EMPTY = pa.scalar(b"", pa.binary())


class ColumnFold(NamedTuple):
    """The changes to the rows that were folded in columns, and the events for all other rows.

    Args:
        truncated: the number of events that precede a truncate.
        duplicates: the number of repeated events.
        deleted: the number of deleted rows.
    """

    changes: TableChanges
    truncated: int
    duplicates: int
    deleted: int
    others: EventColumns


def fold_in_columns(events: EventColumns, table: MirrorTable, plan: Plan) -> ColumnFold:
    """Fold the events for rows that can be folded in columns.

    Raises:
        NotInColumns: no row can be folded in columns.
    """
    columns = _in_one_piece(events.columns)
    scopes = columns["scope"].dictionary_encode()
    if not any(map(is_in_order, scopes.dictionary.to_pylist())):
        raise NotInColumns
    rows = number_rows(columns["key"], columns["key_old"], plan.shape)
    stored = _Stored.of(table.mark_columns(pa.Table.from_batches([rows.keys])), rows, scopes.dictionary)
    found_elsewhere = [_other_rows(rows, scopes, stored), _reused_keys(columns, rows, stored)]
    others = pc.is_in(rows.of_events, pc.unique(pa.concat_arrays(found_elsewhere)))
    fields = {name: columns[name] for name in _LOOKED_AT}
    numbers = {"row": rows.of_events, "in_scope": scopes.indices, "place": counting(columns.num_rows)}
    found = _where(pa.RecordBatch.from_pydict({**fields, **numbers}), pc.invert(others))
    above = _where(found, pc.invert(_under(found, scopes.dictionary, table.floors)))
    timeline = _Timeline(above.take(pc.sort_indices(above["row"])), stored)
    fresh = timeline.without_duplicates()
    duplicates = len(timeline) - len(fresh)
    changes, deleted = _changes(fresh, columns["after"], rows.keys, scopes.dictionary, plan)
    return ColumnFold(changes, found.num_rows - above.num_rows, duplicates, deleted, events.where(others))


class _Stored(NamedTuple):
    """The markers of stored rows, by row number; null for rows that are not stored. `scope` is an index into the
    events' scopes, or -1 for any other scope. `whole` is true if the row needs no state except its position.
    """

    scope: pa.Int64Array
    pos: pa.StringArray
    incomplete: pa.BooleanArray
    exists: pa.BooleanArray
    whole: pa.BooleanArray

    @classmethod
    def of(cls, marks: pa.Table, rows: RowNumbers, scopes: pa.StringArray) -> _Stored:
        places = pc.index_in(
            counting(rows.keys.num_rows), value_set=rows.of_stored(marks.select(rows.keys.schema.names))
        )
        found = _in_one_piece(marks.select(list(MARK_COLUMNS)).combine_chunks().take(places))
        is_stored = pc.is_valid(found[SCOPE])
        scope = pc.fill_null(pc.index_in(found[SCOPE], value_set=scopes), -1).cast(pa.int64())
        return cls(
            pc.if_else(is_stored, scope, None),
            found[POS],
            pc.fill_null(found[INCOMPLETE], False),
            pc.and_(is_stored, pc.is_null(found[DELETED_AT])),
            pc.is_null(found[STATE]),
        )


def _other_rows(rows: RowNumbers, scopes: pa.DictionaryArray, stored: _Stored) -> pa.Int64Array:
    """Return the rows that must be folded one by one."""
    number, scope = rows.of_events, scopes.indices.cast(pa.int64())
    known = stored.scope.take(number)
    unordered = pa.array([not is_in_order(name) for name in scopes.dictionary.to_pylist()]).take(scopes.indices)
    moves = pc.is_valid(rows.before)
    apart = pc.or_(pc.fill_null(pc.not_equal(scope, known), False), pc.invert(stored.whole.take(number)))
    alone = pc.or_(pc.or_(unordered, moves), apart)
    several = pa.table({"row": number, "scope": scope}).group_by("row").aggregate([("scope", "min"), ("scope", "max")])
    mixed = several.filter(pc.not_equal(several["scope_min"], several["scope_max"]))["row"].combine_chunks()
    return pa.concat_arrays([number.filter(alone), rows.before.drop_null(), mixed])


def _reused_keys(columns: pa.RecordBatch, rows: RowNumbers, stored: _Stored) -> pa.Int64Array:
    """Return the rows that an insert overwrites. The insert's transaction may still delete the older row later."""
    number = rows.of_events
    is_told = pc.or_(pc.is_valid(columns["tx"]), pc.is_valid(columns["committed"]))
    inserts = pc.and_(pc.equal(columns["op"], "c"), is_told)
    candidates = pc.unique(number.filter(inserts))
    if not len(candidates):
        return candidates
    is_new = pc.greater(columns["pos"], pc.fill_null(stored.pos.take(number), ""))
    places = pc.and_(pc.is_in(number, candidates), is_new)
    found = pa.table({"row": number, "pos": columns["pos"], "op": columns["op"], "inserts": inserts}).filter(places)
    found = found.sort_by([("row", "ascending"), ("pos", "ascending")]).combine_chunks()
    row, op = (found[name].combine_chunks() for name in ("row", "op"))
    if not len(row):
        return candidates.slice(0, 0)
    again = pc.equal(row.slice(1), row.slice(0, len(row) - 1))
    after = pc.and_(again, pc.not_equal(op.slice(0, len(op) - 1), "d"))
    first = pa.concat_arrays([pa.array([True]), pc.invert(again)])
    over = pc.or_(pc.and_(first, stored.exists.take(row)), pa.concat_arrays([pa.array([False]), after]))
    return row.filter(pc.and_(over, found["inserts"].combine_chunks()))


def _under(events: pa.RecordBatch, scopes: pa.StringArray, floors: Mapping[str, str]) -> pa.BooleanArray:
    """Return, for each event, whether it is at or before the last truncate in its scope."""
    under = pa.repeat(pa.scalar(False), events.num_rows)
    for number, scope in enumerate(scopes.to_pylist()):
        if scope in floors:
            up_to = pc.less_equal(events["pos"], floors[scope])
            under = pc.or_(under, pc.and_(pc.equal(events["in_scope"], number), up_to))
    return under


@dataclass(frozen=True)
class _Timeline:
    """Events grouped by row, in order within each row.

    Args:
        events: the fields that are compared. `row` is the row number, in ascending order. `in_scope` is the scope
            number, and `place` is the image index.
    """

    events: pa.RecordBatch
    stored: _Stored

    def __len__(self) -> int:
        return int(self.events.num_rows)

    @cached_property
    def rows(self) -> pa.Int64Array:
        """Return each event's row number."""
        return self.events["row"]

    @cached_property
    def _begins(self) -> pa.BooleanArray:
        """Return, for each event, whether it is the first event for its row."""
        rows = self.rows
        first = pa.array([True][: len(rows)], pa.bool_())
        return pa.concat_arrays([first, pc.not_equal(rows.slice(1), rows.slice(0, max(0, len(rows) - 1)))])

    @cached_property
    def first(self) -> pa.Int64Array:
        """Return the index of each row's first event."""
        return pc.indices_nonzero(self._begins).cast(pa.int64())

    @cached_property
    def last(self) -> pa.Int64Array:
        """Return the index of each row's last event."""
        after = pa.concat_arrays([self.first.slice(1), pa.array([len(self)][: len(self)], pa.int64())])
        return pc.subtract(after, 1)

    @cached_property
    def row_places(self) -> pa.Int64Array:
        """For each event, return the index of its row among the rows that have events."""
        return pc.subtract(pc.cumulative_sum(self._begins.cast(pa.int64())), 1)

    def last_where(self, mask: pa.BooleanArray) -> pa.Int64Array:
        """For each row, return the index of the last event that the mask selects; null if the mask selects none."""
        reached = pc.cumulative_max(pc.if_else(mask, counting(len(self)), -1)).take(self.last)
        return pc.if_else(pc.greater_equal(reached, self.first), reached, None)

    def without_duplicates(self) -> _Timeline:
        """Return the timeline, limited to events that are newer than everything known about their row."""
        if not len(self):
            return self
        positions = self.events["pos"]
        known = pc.fill_null(self.stored.pos.take(self.rows), "")
        rising = pc.or_(pc.greater(positions.slice(1), positions.slice(0, len(self) - 1)), self._begins.slice(1))
        beyond = pc.greater(positions.take(self.first), known.take(self.first))
        if pc.all(rising, min_count=0).as_py() and pc.all(beyond, min_count=0).as_py():
            return self
        # Positions become numbers. Each row has a separate range, so that the running maximum restarts with each row.
        ranks = pc.rank(pa.concat_arrays([positions, known]), tiebreaker="dense").cast(pa.int64())
        base = pc.multiply(self.rows, 2 * len(self) + 1)
        reached, start = pc.add(base, ranks.slice(0, len(self))), pc.add(base, ranks.slice(len(self)))
        so_far = pa.concat_arrays([pa.array([-1], pa.int64()), pc.cumulative_max(reached).slice(0, len(self) - 1)])
        fresh = pc.greater(reached, pc.max_element_wise(so_far, start))
        return _Timeline(self.events.filter(fresh), self.stored)


def _changes(
    timeline: _Timeline, images: pa.BinaryArray, keys: pa.RecordBatch, scopes: pa.StringArray, plan: Plan
) -> tuple[TableChanges, int]:
    """Return the changes to write, and the number of deleted rows."""
    events, stored = timeline.events, timeline.stored
    deletes = pc.equal(events["op"], "d")
    resets = pc.or_(pc.not_equal(events["op"], "u"), events["full"])
    reset = timeline.last_where(resets)
    start = pc.coalesce(reset, timeline.first)
    kept = pc.greater_equal(counting(events.num_rows), start.take(timeline.row_places))
    alive = _Timeline(_where(events, kept), stored)
    begun = _Begun(resets.filter(kept), deletes.filter(kept))

    rows = timeline.rows.take(timeline.first)
    was_reset, is_stored = pc.is_valid(reset), stored.exists.take(rows)
    first = events.take(start)
    has_gaps = pc.or_(first["withholds"], pc.is_valid(first["schema_id"]))
    leaves_gaps = pc.and_(pc.invert(pc.or_(first["full"], pc.equal(first["op"], "d"))), has_gaps)
    exists = pc.if_else(was_reset, pc.not_equal(first["op"], "d"), is_stored)
    incomplete = pc.if_else(was_reset, leaves_gaps, stored.incomplete.take(rows))
    patches = pc.invert(begun.resets)
    is_patched = pc.is_valid(alive.last_where(patches))
    withheld = pc.is_valid(alive.last_where(pc.and_(patches, alive.events["withholds"])))
    incomplete = pc.or_(pc.or_(incomplete, withheld), pc.and_(is_patched, pc.invert(exists)))
    exists = pc.or_(exists, is_patched)

    told = images.take(alive.events["place"])
    values, flags = _values(alive, begun, told, pc.and_(is_stored, pc.invert(was_reset)), plan)
    last = events.take(timeline.last)
    names = plan.shape.types
    written = {
        **{name: values[name] if name in values else keys[name].take(rows) for name in names},
        SCOPE: scopes.take(last["in_scope"]),
        POS: last["pos"],
        STATE: pa.nulls(len(rows), pa.string()),
        INCOMPLETE: incomplete,
        DELETED_AT: _instants(pc.if_else(exists, None, first["ts"])),
        COMMIT_TS: _instants(last["committed"]),
    }
    inserts_only = not pc.any(pc.is_valid(stored.scope.take(rows)), min_count=0).as_py()
    changes = TableChanges(pa.table(written), flags, inserts_only)
    return changes, int(pc.sum(pc.invert(exists), min_count=0).as_py())


def _instants(times: pa.Int64Array) -> pa.TimestampArray:
    """Apply `mirror.instant` to a whole column."""
    earlier = pc.min_element_wise(times, LATEST, skip_nulls=False)
    return pc.max_element_wise(earlier, EARLIEST, skip_nulls=False).cast(pa.timestamp("us", "UTC"))


class _Begun(NamedTuple):
    """Flags for each event since its row's last reset: whether the event is a reset, and whether it is a delete."""

    resets: pa.BooleanArray
    deletes: pa.BooleanArray


def _values(
    alive: _Timeline, begun: _Begun, images: pa.BinaryArray, stays: pa.BooleanArray, plan: Plan
) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    """Return the values to write by column, without the key columns. For columns that some rows leave unchanged, also
    return the rows that write them.

    Args:
        images: each event's image; a delete's image has no effect.
        stays: for each row, whether it keeps the columns that no event contains.
    """
    shape = plan.shape
    images = pc.if_else(begun.deletes, pa.scalar(b"{}", pa.binary()), images)
    read = _read(images, alive.events["schema_id"], plan)
    patched = pc.if_else(begun.resets, _EMPTY, images)
    is_plain = pc.all(begun.resets, min_count=0).as_py()
    values: dict[str, pa.Array] = {}
    flags: dict[str, pa.Array] = {}
    for name, sql in shape.types.items():
        if name in shape.key:
            continue
        column = read.get(name, pa.nulls(len(images), arrow_type(sql)))
        if is_plain:  # each row has one event, which contains all of the row's columns
            values[name] = column
            continue
        told = pc.or_(begun.resets, names_column(patched, name)) if name in read else begun.resets
        place = alive.last_where(told)
        values[name] = column.take(place)
        left = pc.and_(stays, pc.is_null(place))
        if pc.any(left).as_py():
            flags[name] = pc.invert(left)
    return values, flags


def _read(images: pa.BinaryArray, schema_of: pa.StringArray, plan: Plan) -> dict[str, pa.Array]:
    """Return the columns in the images, reading each image with its own schema."""
    ids = pc.unique(schema_of).to_pylist()
    if len(ids) <= 1:
        return read_images(images, _types(plan, *ids)) if ids else {}
    places: list[pa.Array] = []
    parts: list[pa.Table] = []
    for id in ids:
        mask = pc.is_null(schema_of) if id is None else pc.fill_null(pc.equal(schema_of, id), False)
        places.append(pc.indices_nonzero(mask))
        parts.append(pa.table(read_images(images.filter(mask), _types(plan, id))))
    order = pc.sort_indices(pa.concat_arrays(places))
    together = pa.concat_tables(parts, promote_options="default").take(order)
    return {name: together[name].combine_chunks() for name in together.column_names}


def _types(plan: Plan, schema_id: str | None) -> dict[str, str]:
    """Return each column's type in the events of one schema.

    Raises:
        NotInColumns: a column is renamed in the table, missing from it, or stored in one of several versions.
    """
    places = plan.places[schema_id]
    if any(name != place or name in plan.versions for name, place in places.items()):
        raise NotInColumns
    return {name: plan.shape.types[name] for name in places}


def _where(events: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the events that the mask selects. Usually the mask selects all events, and no copy is needed."""
    return events if pc.all(mask, skip_nulls=False, min_count=0).as_py() else events.filter(mask)


def _in_one_piece(table: pa.Table) -> pa.RecordBatch:
    pieces = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    if len(pieces) > 1:  # more data than an Arrow array can hold
        raise NotInColumns
    return pieces[0]
