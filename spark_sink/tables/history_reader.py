"""Read the stored versions of a history by column, in whatever table format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.model.event import Key
from spark_sink.model.version_timeline import End, TakenKey, Truncate, Version
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableShape
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
from spark_sink.tables.reach import Reach, reach_of

# All truncates, as JSON.
_TRUNCATES_PROPERTY = "cdc.truncates"

_TRUNCATES = msgspec.json.Decoder(tuple[Truncate, ...])

# The row versions that took over another row's key in the same transaction, as JSON.
_TAKEN_PROPERTY = "cdc.taken_keys"

_TAKEN = msgspec.json.Decoder(tuple[TakenKey, ...])

_OWN = (SCOPE, POS, TURN, OP, SET, START_TS, END_OP, END_SCOPE, END_POS, END_TS, CURRENT, INCOMPLETE)


class HistoryReader:
    """The reading half of a history. Each format implements `_scan`, which returns columns of the versions."""

    shape: TableShape

    def _scan(self, names: Sequence[str], reach: Reach | None = None) -> Iterator[pa.RecordBatch]:
        """Return these columns for the versions of all rows within `reach`. Other rows may be included."""
        raise NotImplementedError

    def greatest(self) -> Mapping[str, str]:
        return greatest_of(self._scan([SCOPE, POS]))

    def versions(self, keys: Collection[Key], since: Mapping[str, str] | None = None) -> dict[Key, list[Version]]:
        wanted = set(keys)
        found: dict[Key, list[Version]] = {}
        if not wanted:
            return found
        names = tuple(name for name in self.shape.types if name not in self.shape.key)
        for batch in self._scan([*self.shape.key, *names, *_OWN], reach_of(wanted, self.shape.key)):
            for i, name in enumerate(self.shape.key):
                values = pa.array({key[i] for key in wanted}, arrow_type(self.shape.types[name]))
                batch = batch.filter(pc.is_in(batch.column(name), values))
            if since is not None:
                batch = batch.filter(_may_change(batch, since))
            stored = [batch.column(name).to_pylist() for name in (*self.shape.key, *names)]
            own = [_plain(batch.column(name)).to_pylist() for name in _OWN]
            width = len(self.shape.key)
            for row, meta in zip(zip(*stored, strict=True), zip(*own, strict=True), strict=True):
                if row[:width] in wanted:
                    values_of_row = dict(zip(names, row[width:], strict=True))
                    found.setdefault(row[:width], []).append(_version(values_of_row, *meta))
        return found

    def current_keys(self) -> set[Key]:
        return set(self.written())

    def written(self) -> dict[Key, tuple[str, str]]:
        columns = [*self.shape.key, SCOPE, POS]
        found: dict[Key, tuple[str, str]] = {}
        for batch in self._scan([*columns, CURRENT, OP]):
            exists = pc.fill_null(pc.not_equal(batch.column(OP), "d"), True)
            chosen = batch.filter(pc.and_(pc.fill_null(batch.column(CURRENT), False), exists))
            for *key, scope, pos in zip(*(chosen.column(name).to_pylist() for name in columns), strict=True):
                found[tuple(key)] = scope, pos
        return found

    def rows_spanning_floor(self, truncate: Truncate, *, late: bool) -> set[Key]:
        found: set[Key] = set()
        columns = [*self.shape.key, SCOPE, POS, OP, END_SCOPE, END_POS, END_OP]
        for batch in self._scan(columns):
            begun = covered(batch.column(SCOPE), batch.column(POS), truncate)
            ended = covered(batch.column(END_SCOPE), batch.column(END_POS), truncate)
            # A NULL comes from a quarantined event, and does not mean a delete.
            exists = pc.fill_null(pc.not_equal(batch.column(OP), "d"), True)
            over = pc.and_(pc.is_valid(batch.column(END_POS)), pc.invert(ended))
            if late:
                over = pc.or_(over, _at_the_floor(batch, truncate))
            chosen = batch.filter(pc.and_(pc.and_(begun, exists), over))
            found |= set(zip(*(chosen.column(name).to_pylist() for name in self.shape.key), strict=True))
        return found


def greatest_of(batches: Iterable[pa.RecordBatch]) -> dict[str, str]:
    """Return the greatest position in every scope, given batches with the columns scope and position."""
    greatest: dict[str, str] = {}
    for batch in batches:
        found = pa.table(batch).group_by(SCOPE).aggregate([(POS, "max")])
        for scope, pos in zip(*(column.to_pylist() for column in found.columns), strict=True):
            greatest[scope] = max(pos, greatest.get(scope, ""))
    return greatest


def stored_truncates(properties: Mapping[str, str]) -> Sequence[Truncate]:
    """Return the truncates in a table's properties, in order."""
    stored = properties.get(_TRUNCATES_PROPERTY)
    return _TRUNCATES.decode(stored) if stored else ()


def truncates_property(truncates: Sequence[Truncate]) -> dict[str, str]:
    """Return the property that stores the truncates."""
    return {_TRUNCATES_PROPERTY: msgspec.json.encode(truncates).decode()}


def stored_taken_keys(properties: Mapping[str, str]) -> Sequence[TakenKey]:
    """Return the keys that other rows have taken, according to a table's properties."""
    stored = properties.get(_TAKEN_PROPERTY)
    return _TAKEN.decode(stored) if stored else ()


def taken_keys_property(taken: Sequence[TakenKey]) -> dict[str, str]:
    """Return the property that stores the taken keys."""
    return {_TAKEN_PROPERTY: msgspec.json.encode(taken).decode()}


def _may_change(batch: pa.RecordBatch, since: Mapping[str, str]) -> pa.Array:
    """Select the versions whose end may change, and those that contain an earlier state of a row; see
    `HistoryTable.versions`.
    """
    scope, end_scope, end = (batch.column(name) for name in (SCOPE, END_SCOPE, END_POS))
    later = [pc.and_(pc.equal(scope, one), pc.greater(end, pos)) for one, pos in since.items()]
    truncated = pc.equal(batch.column(END_OP), "t")
    clauses = [pc.is_null(end), truncated, pc.not_equal(scope, end_scope), *later]
    return reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))


def covered(scope: pa.Array, pos: pa.Array, truncate: Truncate) -> pa.Array:
    """Select the positions at or before a truncate."""
    clauses = [pc.and_(pc.equal(scope, one), pc.less_equal(pos, floor)) for one, floor in truncate.floors.items()]
    return reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))


def _at_the_floor(batch: pa.RecordBatch, truncate: Truncate) -> pa.Array:
    """Select the versions that a truncate at or above this position in their scope has ended."""
    scope, end = batch.column(END_SCOPE), batch.column(END_POS)
    clauses = [pc.and_(pc.equal(scope, one), pc.equal(end, floor)) for one, floor in truncate.floors.items()]
    same = reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))
    return pc.and_(same, pc.fill_null(pc.equal(batch.column(END_OP), "t"), False))


def _plain(column: pa.Array) -> pa.Array:
    """Return times as microseconds, because datetime cannot represent all of them."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _version(values: dict[str, Any], *own: Any) -> Version:
    scope, pos, turn, op, sets, start, end_op, end_scope, end_pos, end_ts, current, incomplete = own
    whole = sets is None
    end = None if end_pos is None else End(end_op, end_scope, end_pos, end_ts)
    carried = None if whole else tuple(name for name in sets if name is not None)
    # The incomplete part of a patch can come from before the truncate.
    gap = incomplete and (whole or op is None or None in sets)
    return Version(turn, scope, pos, op, carried, start, values, gap, incomplete, end, current)
