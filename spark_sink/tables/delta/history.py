"""A Delta table of versions in a worker, through deltalake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake

from spark_sink.model.event import Key
from spark_sink.model.version_timeline import End, Truncate, Version
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.tables.delta.open_table import (
    DeltaOpened,
    commit,
    committing,
    literal,
)
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
from spark_sink.tables.protocols import Marker

# Every truncate, as JSON.
TRUNCATES_PROPERTY = "cdc.truncates"

_TRUNCATES = msgspec.json.Decoder(tuple[Truncate, ...])

_OWN = (SCOPE, POS, TURN, OP, SET, START_TS, END_OP, END_SCOPE, END_POS, END_TS, CURRENT, INCOMPLETE)

# Gives the files that may hold rows of some keys.
Near = Callable[[set[Key]], ds.Dataset]


class DeltaHistory(DeltaOpened):
    """One table of the versions of a source table's rows."""

    def __init__(self, table: DeltaTable, shape: TableShape, choice: Choice, near: Near) -> None:
        super().__init__(table, shape, choice)
        self._near = near

    @property
    def truncates(self) -> Sequence[Truncate]:
        stored = self._table.metadata().configuration.get(TRUNCATES_PROPERTY)
        return _TRUNCATES.decode(stored) if stored else ()

    def greatest(self) -> Mapping[str, str]:
        greatest: dict[str, str] = {}
        for batch in self._table.to_pyarrow_dataset().to_batches(columns=[SCOPE, POS]):
            found = pa.table(batch).group_by(SCOPE).aggregate([(POS, "max")])
            for scope, pos in zip(*(column.to_pylist() for column in found.columns), strict=True):
                greatest[scope] = max(pos, greatest.get(scope, ""))
        return greatest

    def versions(self, keys: Collection[Key], since: Mapping[str, str] | None = None) -> dict[Key, list[Version]]:
        wanted = set(keys)
        found: dict[Key, list[Version]] = {}
        if not wanted:
            return found
        names = tuple(name for name in self.shape.types if name not in self.shape.key)
        for batch in self._near(wanted).to_batches(columns=[*self.shape.key, *names, *_OWN]):
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

    def rows_spanning_floor(self, truncate: Truncate, *, late: bool) -> set[Key]:
        found: set[Key] = set()
        columns = [*self.shape.key, SCOPE, POS, OP, END_SCOPE, END_POS, END_OP]
        for batch in self._table.to_pyarrow_dataset().to_batches(columns=columns):
            begun = _covered(batch.column(SCOPE), batch.column(POS), truncate)
            ended = _covered(batch.column(END_SCOPE), batch.column(END_POS), truncate)
            # NULL, of an event in quarantine, is no delete.
            exists = pc.fill_null(pc.not_equal(batch.column(OP), "d"), True)
            over = pc.and_(pc.is_valid(batch.column(END_POS)), pc.invert(ended))
            if late:
                over = pc.or_(over, _at_the_floor(batch, truncate))
            chosen = batch.filter(pc.and_(pc.and_(begun, exists), over))
            found |= set(zip(*(chosen.column(name).to_pylist() for name in self.shape.key), strict=True))
        return found

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        if adds_only:
            # merge: columns that somebody else added are NULL in new rows.
            with committing(self._table, *markers):
                write_deltalake(
                    self._table, rows, mode="append", schema_mode="merge", commit_properties=commit(*markers)
                )
            return
        same = " AND ".join(f"t.`{name}` = s.`{name}`" for name in (*self.shape.key, SCOPE, POS))
        written = {f"`{name}`": f"s.`{name}`" for name in rows.column_names}
        merge = self._table.merge(
            rows,
            same,
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            commit_properties=commit(*markers),
        )
        with committing(self._table, *markers):
            merge.when_matched_update(written).when_not_matched_insert(written).execute()

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None:
        text = msgspec.json.encode(truncates).decode()
        with committing(self._table):
            self._table.alter.set_table_properties({TRUNCATES_PROPERTY: text}, raise_if_not_exists=False)

    def close(self, truncate: Truncate, marker: Marker) -> bool:
        floors = sorted(truncate.floors.items())
        begun = (f"(`{SCOPE}` = {literal(s)} AND `{POS}` <= {literal(p)})" for s, p in floors)
        ends = " ".join(f"WHEN `{SCOPE}` = {literal(s)} THEN {literal(p)}" for s, p in floors)
        before = self._table.version()
        with committing(self._table, marker):
            self._table.update(
                updates={
                    f"`{END_OP}`": "'t'",
                    f"`{END_SCOPE}`": f"`{SCOPE}`",
                    f"`{END_POS}`": f"CASE {ends} END",
                    f"`{END_TS}`": f"arrow_cast({truncate.ts}, 'Timestamp(Microsecond, Some(\"UTC\"))')",
                    f"`{CURRENT}`": "false",
                },
                predicate=f"`{CURRENT}` AND ({' OR '.join(begun)})",
                commit_properties=commit(marker),
            )
        return self._table.version() > before


def _may_change(batch: pa.RecordBatch, since: Mapping[str, str]) -> pa.Array:
    """Select versions that may end otherwise, or say what a row was before; see `HistoryTable.versions`."""
    scope, end_scope, end = (batch.column(name) for name in (SCOPE, END_SCOPE, END_POS))
    later = [pc.and_(pc.equal(scope, one), pc.greater(end, pos)) for one, pos in since.items()]
    truncated = pc.equal(batch.column(END_OP), "t")
    clauses = [pc.is_null(end), truncated, pc.not_equal(scope, end_scope), *later]
    return reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))


def _covered(scope: pa.Array, pos: pa.Array, truncate: Truncate) -> pa.Array:
    """Select places that lie before a truncate."""
    clauses = [pc.and_(pc.equal(scope, one), pc.less_equal(pos, floor)) for one, floor in truncate.floors.items()]
    return reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))


def _at_the_floor(batch: pa.RecordBatch, truncate: Truncate) -> pa.Array:
    """Select versions that were ended by a truncate which reaches as far in their scope."""
    scope, end = batch.column(END_SCOPE), batch.column(END_POS)
    clauses = [pc.and_(pc.equal(scope, one), pc.equal(end, floor)) for one, floor in truncate.floors.items()]
    same = reduce(pc.or_, (pc.fill_null(clause, False) for clause in clauses))
    return pc.and_(same, pc.fill_null(pc.equal(batch.column(END_OP), "t"), False))


def _plain(column: pa.Array) -> pa.Array:
    """Times as microseconds: no datetime holds all of them."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _version(values: dict[str, Any], *own: Any) -> Version:
    scope, pos, turn, op, sets, start, end_op, end_scope, end_pos, end_ts, current, incomplete = own
    whole = sets is None
    end = None if end_pos is None else End(end_op, end_scope, end_pos, end_ts)
    carried = None if whole else tuple(name for name in sets if name is not None)
    # Of a patch, what is incomplete may come from before it.
    gap = incomplete and (whole or op is None or None in sets)
    return Version(turn, scope, pos, op, carried, start, values, gap, incomplete, end, current)
