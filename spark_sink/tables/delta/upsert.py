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
        both = pa.concat_tables([stored, self._as_stored(stored.schema)]).combine_chunks()
        columns: dict[str, pa.ChunkedArray] = {}
        for flags, names in self._by_flags(stored.column_names):
            writes = pc.fill_null(flags.take(place), False)
            index = pa.concat_arrays([pc.if_else(writes, moves, stays).filter(left), added])
            columns.update(zip(names, both.select(names).take(index).columns, strict=True))
        return pa.table([columns[name] for name in stored.column_names], stored.schema)

    def _by_flags(self, names: Sequence[str]) -> list[tuple[pa.BooleanArray, list[str]]]:
        """Group columns of a table by the rows that write them. The flags of a group are true for these rows. Most
        columns are in one of two groups: all rows write them, or the changed rows lack them.
        """
        every, none = pa.repeat(True, self.rows.num_rows), pa.repeat(False, self.rows.num_rows)
        groups: list[tuple[pa.BooleanArray, list[str]]] = []
        present = set(self.rows.column_names)
        for name in names:
            flags = self.kept.get(name, every) if name in present else none
            for other, group in groups:
                if other.equals(flags):
                    group.append(name)
                    break
            else:
                groups.append((flags, [name]))
        return groups

    def _as_stored(self, schema: pa.Schema) -> pa.Table:
        """Return the rows with the columns of the table. A column that the rows lack is NULL."""
        present = dict(zip(self.rows.column_names, self.rows.columns, strict=True))
        columns: list[pa.ChunkedArray | pa.Array] = []
        for of in schema:
            column = present.get(of.name)
            if column is None:
                columns.append(pa.nulls(self.rows.num_rows, of.type))
            else:
                # Casting to the same type is slower than comparing the types.
                columns.append(column if column.type == of.type else column.cast(of.type))
        return pa.table(columns, schema)

    @cached_property
    def _keys(self) -> list[pa.Array]:
        return [self.rows.column(name).combine_chunks() for name in self.key]

    @cached_property
    def _removes(self) -> pa.BooleanArray:
        """A per-row flag that is true if the row removes the stored row."""
        if self.removes is None:
            return pa.repeat(False, self.rows.num_rows)
        return self.removes.combine_chunks()
