"""An append-only Delta table of events in a worker, read and written through deltalake."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import write_deltalake

from spark_sink.tables.changes import Identity, Marker
from spark_sink.tables.delta.open_table import (
    DeltaOpened,
    commit,
    committing,
    hooks,
)
from spark_sink.tables.history_reader import greatest_of
from spark_sink.tables.meta_columns import (
    ID,
    POS,
    SCOPE,
)

# Metadata that each append stores in the log, with `greatest` as JSON, so that the next batch need not read the table.
GREATEST = "cdc.greatest"

# The maximum number of commits by other writers, such as compactions, between two appends.
_LOOK_BACK = 20


class DeltaLog(DeltaOpened):
    """A table that stores the events of one source table."""

    def greatest(self) -> Mapping[str, str]:
        for made in self._table.history(_LOOK_BACK):
            if GREATEST in made:
                stored: dict[str, str] = json.loads(made[GREATEST])
                return stored
        return greatest_of(self._table.to_pyarrow_dataset().to_batches(columns=[SCOPE, POS]))

    def known(self, wanted: Collection[Identity]) -> set[Identity]:
        places = [one.pos for one in wanted]
        files = self._table.to_pyarrow_dataset()
        near = files.get_fragments(filter=(ds.field(POS) >= min(places)) & (ds.field(POS) <= max(places)))
        chosen = ds.FileSystemDataset(list(near), files.schema, files.format, files.filesystem)
        ids = pa.array({one.id for one in wanted}, pa.string())
        found: set[Identity] = set()
        for batch in chosen.to_batches(columns=[ID, SCOPE, POS]):
            same = batch.filter(pc.is_in(batch.column(ID), ids))
            found.update(map(Identity, *(same.column(name).to_pylist() for name in (ID, SCOPE, POS))))
        return found & set(wanted)

    def append(self, rows: pa.Table, greatest: Mapping[str, str], *markers: Marker) -> None:
        properties = commit(*markers, metadata={GREATEST: json.dumps(greatest, sort_keys=True)})
        # Use the schema mode `merge`, so that columns that someone else added are NULL in new rows.
        with committing(self._table, *markers):
            write_deltalake(
                self._table,
                rows,
                mode="append",
                schema_mode="merge",
                commit_properties=properties,
                post_commithook_properties=hooks(self._table),
            )
