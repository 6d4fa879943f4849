"""A Delta table of row versions in a worker, read and written through deltalake."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_sink.model.version_timeline import TakenKey, Truncate
from spark_sink.tables.changes import Marker
from spark_sink.tables.delta.open_table import (
    commit,
    committing,
    keep_properties,
    literal,
)
from spark_sink.tables.delta.rows import DeltaRows
from spark_sink.tables.delta.upsert import Upsert
from spark_sink.tables.history_reader import (
    HistoryReader,
    stored_taken_keys,
    stored_truncates,
    taken_keys_property,
    truncates_property,
)
from spark_sink.tables.meta_columns import (
    CURRENT,
    END_OP,
    END_POS,
    END_SCOPE,
    END_TS,
    POS,
    SCOPE,
)


class DeltaHistory(DeltaRows, HistoryReader):
    """A table that contains the row versions of one source table."""

    @property
    def truncates(self) -> Sequence[Truncate]:
        return stored_truncates(self._table.metadata().configuration)

    @property
    def taken_keys(self) -> Sequence[TakenKey]:
        return stored_taken_keys(self._table.metadata().configuration)

    def write(self, rows: pa.Table, adds_only: bool, *markers: Marker) -> None:
        if adds_only:
            self._append(rows, markers)
        else:
            self._upsert(Upsert(rows, (*self.shape.key, SCOPE, POS)), markers)

    def keep_truncates(self, truncates: Sequence[Truncate]) -> None:
        keep_properties(self._table, truncates_property(truncates))

    def keep_taken_keys(self, taken: Sequence[TakenKey]) -> None:
        keep_properties(self._table, taken_keys_property(taken))

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
