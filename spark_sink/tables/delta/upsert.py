"""Update, insert and remove rows of a Delta table, in either of two ways with the same result: with deltalake's
`MERGE`, or in Arrow, for a table that is written as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_sink.events.arrow_values import counting
from spark_sink.events.row_numbers import places
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.open_table import commit, hooks
from spark_sink.tables.spark_operations import GONE, WRITTEN, merged


@dataclass(frozen=True)
class Upsert:
    """Rows to write, each of which replaces the stored row with the same key.

    Args:
        key: the columns that identify a row.
        kept: for each column that some rows leave unchanged, a per-row flag that is true if the row writes the column.
        removes: a per-row flag that is true if the stored row is removed instead of replaced. None removes no row.
    """

    rows: pa.Table
    key: Sequence[str]
    kept: Mapping[str, pa.Array] = field(default_factory=dict)
    removes: pa.ChunkedArray | None = None

    def merge(self, table: DeltaTable, markers: Sequence[Marker]) -> None:
        names, source = self.rows.column_names, self.rows
        for name, flags in self.kept.items():
            source = source.append_column(WRITTEN + name, flags)
        if self.removes is not None:
            source = source.append_column(GONE, self.removes)
        merge = table.merge(
            source,
            " AND ".join(f"t.`{name}` = s.`{name}`" for name in self.key),
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            commit_properties=commit(*markers),
            post_commithook_properties=hooks(table),
        )
        present = None
        if self.removes is not None:
            merge, present = merge.when_matched_delete(f"s.`{GONE}`"), f"NOT s.`{GONE}`"
        updates = {f"`{name}`": merged(name, self.kept) for name in names}
        inserts = {f"`{name}`": f"s.`{name}`" for name in names}
        # The conditions contain no positions, because the fold has already compared the positions, and the commit fails
        # if another writer has changed the table.
        merge.when_matched_update(updates).when_not_matched_insert(inserts, present).execute()

    @property
    def can_apply(self) -> bool:
        """Return whether Arrow compares the keys like SQL, where 0.0 equals -0.0, and NULL equals nothing."""
        return not any(key.null_count or pa.types.is_floating(key.type) for key in self._keys)

    def applied_to(self, stored: pa.Table) -> pa.Table | None:
        """Return the rows of a table after the upsert, or None if it changes nothing."""
        place = places([stored.column(name).combine_chunks() for name in self.key], self._keys)
        removes = self._removes
        known = pc.is_in(counting(self.rows.num_rows), value_set=place)
        new = pc.indices_nonzero(pc.invert(pc.or_(known, removes))).cast(pa.int64())
        if place.null_count == len(place) and not len(new):
            return None
        left, before = pc.invert(pc.fill_null(removes.take(place), False)), stored.num_rows
        stays, moves, added = counting(before), pc.add(place, before), pc.add(new, before)
        rows = pa.table([self._as_stored(of) for of in stored.schema], stored.schema)
        both = pa.concat_tables([stored, rows]).combine_chunks()
        # Most columns are written by every row, so most columns have the same index.
        every = pa.concat_arrays([pc.coalesce(moves, stays).filter(left), added])
        columns = []
        for of, values in zip(both.schema, both.columns, strict=True):
            if of.name not in self.rows.column_names:
                index = pa.concat_arrays([stays.filter(left), added])
            elif of.name in self.kept:
                writes = pc.fill_null(self.kept[of.name].take(place), False)
                index = pa.concat_arrays([pc.if_else(writes, moves, stays).filter(left), added])
            else:
                index = every
            columns.append(values.take(index))
        return pa.table(columns, stored.schema)

    def _as_stored(self, of: pa.Field) -> pa.ChunkedArray | pa.Array:
        """Return the values for a column of the table. They are NULL for a column that the rows lack."""
        if of.name in self.rows.column_names:
            column = self.rows.column(of.name)
            return column if column.type == of.type else column.cast(of.type)
        return pa.nulls(self.rows.num_rows, of.type)

    @cached_property
    def _keys(self) -> list[pa.Array]:
        return [self.rows.column(name).combine_chunks() for name in self.key]

    @cached_property
    def _removes(self) -> pa.BooleanArray:
        """A per-row flag that is true if the row removes the stored row."""
        if self.removes is None:
            return pa.repeat(False, self.rows.num_rows)
        return self.removes.combine_chunks()
