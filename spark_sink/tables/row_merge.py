"""Merge staged rows into the rows of Parquet files without Spark. The result is a table with the new rows, and the
numbers of the rows that they replace. Deletion vectors can remove these rows.

The result equals the result of Spark's MERGE (`spark_sql.merge_statement`). Only the key columns of the files are read,
and the columns in which new rows keep stored values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.events.arrow_values import counting
from spark_sink.events.row_numbers import places
from spark_sink.tables.meta_columns import UPDATED_AT
from spark_sink.tables.row_groups import StoredRows
from spark_sink.tables.spark_operations import GONE, WRITTEN, Merge

LARGEST = 100_000_000
"""Maximum size of a staged file in bytes. Spark merges a larger one, because it would take too much of the driver's
memory.
"""

MOST_IN_MEMORY = 1_000_000_000
"""Maximum size of staged rows in memory, in bytes. A staged file can be much smaller than its rows, and an Arrow array
cannot have more than 2 GB of text.
"""


class FoundRows(NamedTuple):
    """The rows of a file that the merge replaces or removes.

    Args:
        total: the number of all rows in the file.
        rows: the numbers of these rows in the file.
        sources: for each of them, the index of the staged row.
        stored: for each column, the stored values that new rows keep, in order.
    """

    total: int
    rows: pa.Int64Array
    sources: pa.Int64Array
    stored: Mapping[str, pa.Array]


class RowMerge:
    """A merge of staged rows into a table with this schema."""

    def __init__(self, staged: pa.Table, order: Merge, schema: pa.Schema) -> None:
        self._staged = staged
        self._order = order
        self._schema = schema
        self._keys = [staged.column(name).cast(self._type(name)).combine_chunks() for name in order.key]
        self._values = {name: pc.unique(key) for name, key in zip(order.key, self._keys, strict=True)}
        nothing = pa.repeat(pa.scalar(False), staged.num_rows)
        self._gone = staged.column(GONE).combine_chunks() if order.deletes else nothing
        self._keeping = {name: keeping for name in schema.names if (keeping := self._keeps(name)) is not None}

    def _type(self, name: str) -> pa.DataType:
        return self._schema.field(name).type

    def _keeps(self, name: str) -> pa.BooleanArray | None:
        """Return, for each staged row, whether it keeps the stored value of a column, or None if no row does."""
        if name == UPDATED_AT and self._order.at is not None:
            return None
        if name not in self._order.columns:
            return pc.invert(self._gone)
        if name not in self._order.kept:
            return None
        return pc.invert(pc.or_(self._staged.column(WRITTEN + name).combine_chunks(), self._gone))

    def found(self, groups: Iterable[StoredRows]) -> FoundRows:
        """Find the rows of a file that have staged rows."""
        total, numbers, sources = 0, [], []
        stored: dict[str, list[pa.Array]] = {name: [] for name in self._keeping}
        for group in groups:
            rows, source = self._matches(group)
            numbers.append(pc.add(rows, total))
            sources.append(source)
            total += group.rows
            for name, keeping in self._keeping.items():
                wanted = rows.filter(keeping.take(source))
                if len(wanted):
                    stored[name].append(group.column(name, self._type(name), wanted))
        joined = {name: _joined(parts, self._type(name)) for name, parts in stored.items()}
        return FoundRows(total, _joined(numbers, pa.int64()), _joined(sources, pa.int64()), joined)

    def _matches(self, group: StoredRows) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Return the indexes of the rows that have staged rows, and the indexes of these."""
        rows = group.rows_with(self._values)
        if not len(rows):
            return rows, rows
        source = places([group.column(name, self._type(name), rows) for name in self._order.key], self._keys)
        found = pc.is_valid(source)
        return rows.filter(found), source.filter(found)

    def rows(self, changed: Sequence[FoundRows]) -> pa.Table:
        """Return the new rows."""
        matched = _joined([one.sources for one in changed], pa.int64())
        replacing = matched.filter(pc.invert(self._gone.take(matched)))
        every = counting(self._staged.num_rows)
        inserted = every.filter(pc.invert(pc.or_(pc.is_in(every, value_set=matched), self._gone)))
        stored = [one.stored for one in changed]
        return pa.table([self._column(field, replacing, inserted, stored) for field in self._schema], self._schema)

    def _column(
        self, field: pa.Field, replacing: pa.Int64Array, inserted: pa.Int64Array, stored: list[Mapping[str, pa.Array]]
    ) -> pa.Array:
        """Return a column of the new rows."""
        name, sources = field.name, pa.concat_arrays([replacing, inserted])
        if name == UPDATED_AT and self._order.at is not None:
            return pa.repeat(pa.scalar(self._order.at, field.type), len(sources))
        if name in self._order.columns:
            staged = self._staged.column(name).cast(field.type).combine_chunks()
        else:
            staged = pa.nulls(self._staged.num_rows, field.type)
        if name not in self._keeping:
            return staged.take(sources)
        kept, keeps = _joined([one[name] for one in stored], field.type), self._keeping[name].take(replacing)
        index = pc.subtract(pc.cumulative_sum(keeps.cast(pa.int64())), 1)
        index = pc.if_else(keeps, index, pc.add(replacing, len(kept)))
        return pa.concat_arrays([kept, staged]).take(pa.concat_arrays([index, pc.add(inserted, len(kept))]))


def _joined(parts: Sequence[pa.Array], type: pa.DataType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], type)
