"""Delta tables in a worker, through deltalake: read what is stored, write changes. Never while Spark changes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from spark_sink import quarantine
from spark_sink.columns import arrow_type, has_statistics, is_known, sql_type_of_delta
from spark_sink.errors import Refused
from spark_sink.evolve import META_PREFIX, Column, Shape
from spark_sink.fold import Key, Mark
from spark_sink.names import TableId
from spark_sink.tables import INCOMPLETE, POS, SCOPE, SEEN, Changes, Marker

# Table properties that say what a table is a mirror of.
KEY_PROPERTY, TABLE_PROPERTY = "cdc.key", "cdc.table"

# What deltalake reads and writes. Other features it refuses only at commit, when the work is done; constraints could
# be broken by any row.
_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz", "changeDataFeed"})
_PLAIN_WRITER_VERSION = 2

# Columns of a merge source beside the table's own.
_DELETE, _WRITTEN = "_cdc_delete", "_cdc_written_"


def location(warehouse: str, name: str) -> str:
    """Where a table lies: the dots of its name are folders."""
    return f"{warehouse.rstrip('/')}/{name.replace('.', '/')}"


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables of a warehouse."""

    warehouse: str

    def open(self, name: str) -> DeltaMirror | None:
        try:
            opened = DeltaTable(location(self.warehouse, name))
        except TableNotFoundError:
            return None
        _check_features(opened)
        return DeltaMirror(opened)

    def quarantine(self, rows: pa.Table, marker: Marker) -> None:
        table = DeltaTable(location(self.warehouse, quarantine.NAME))
        done = table.transaction_version(marker.app)
        if done is None or done < marker.version:
            write_deltalake(table, rows, mode="append", commit_properties=_commit(marker))


def _check_features(table: DeltaTable) -> None:
    protocol = table.protocol()
    features = frozenset(protocol.writer_features or ())
    if protocol.min_writer_version > _PLAIN_WRITER_VERSION and not features:
        raise Refused(
            f"the table has writer version {protocol.min_writer_version}; at most {_PLAIN_WRITER_VERSION} works"
        )
    if features - _FEATURES:
        raise Refused(f"the table has features that cannot be written: {', '.join(sorted(features - _FEATURES))}")


class DeltaMirror:
    """One table that mirrors a source table."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self.shape = _shape_of(table)

    def applied(self, app: str) -> int | None:
        return self._table.transaction_version(app)

    def marks(self, keys: Collection[Key]) -> dict[Key, Mark]:
        found = self._stored(keys, (SCOPE, POS, SEEN, INCOMPLETE))
        return {
            key: Mark(str(scope), str(pos), json.loads(str(seen)) if seen else {}, bool(incomplete))
            for key, (scope, pos, seen, incomplete) in found
        }

    def rows(self, keys: Collection[Key]) -> dict[Key, dict[str, object]]:
        names = tuple(self.shape.types)
        return {key: dict(zip(names, values, strict=True)) for key, values in self._stored(keys, names)}

    def write(self, changes: Changes, marker: Marker) -> None:
        if changes.inserts_only:
            # merge: columns that somebody else added are NULL in new rows.
            write_deltalake(
                self._table, changes.rows, mode="append", schema_mode="merge", commit_properties=_commit(marker)
            )
            return
        source = _merge_source(changes)
        same_key = " AND ".join(f"t.`{name}` = s.`{name}`" for name in self.shape.key)
        written = {f"`{name}`": f"s.`{name}`" for name in changes.rows.column_names}
        updates = {f"`{name}`": _update(name, changes.kept) for name in changes.rows.column_names}
        merge = self._table.merge(
            source, same_key, source_alias="s", target_alias="t", streamed_exec=False, commit_properties=_commit(marker)
        )
        # No positions in the conditions: the fold has compared them, and a writer that came between fails the commit.
        merge.when_matched_delete(f"s.`{_DELETE}`").when_matched_update(
            updates, f"NOT s.`{_DELETE}`"
        ).when_not_matched_insert(written, f"NOT s.`{_DELETE}`").execute()

    def truncate(self, scope: str, pos: str, marker: Marker) -> None:
        later = f"`{SCOPE}` = {_literal(scope)} AND `{POS}` > {_literal(pos)}"
        self._table.delete(f"NOT ({later})", commit_properties=_commit(marker))

    def _stored(self, keys: Collection[Key], names: Sequence[str]) -> Iterator[tuple[Key, tuple[object, ...]]]:
        """The named columns of those rows that are stored."""
        if not keys:
            return
        wanted = keys if isinstance(keys, set) else set(keys)
        columns = (*self.shape.key, *(name for name in names if name not in self.shape.key))
        for batch in self._near(wanted).to_batches(columns=list(columns)):
            for i, name in enumerate(self.shape.key):
                values = pa.array({key[i] for key in wanted}, arrow_type(self.shape.types[name]))
                batch = batch.filter(pc.is_in(batch.column(name), values))
            stored = {name: batch.column(name).to_pylist() for name in columns}
            found = zip(*(stored[name] for name in self.shape.key), strict=True)
            rest = zip(*(stored[name] for name in names), strict=True)
            yield from ((key, row) for key, row in zip(found, rest, strict=True) if key in wanted)

    def _near(self, keys: set[Key]) -> ds.Dataset:
        """The files that may hold rows of `keys`, by their statistics in the log, where those can be trusted.

        Arrow may not filter inside the files: a merge writes string views there, whose statistics it cannot compare.
        """
        files = self._table.to_pyarrow_dataset()
        condition = ds.scalar(True)
        for i, name in enumerate(self.shape.key):
            if has_statistics(self.shape.types[name]):
                values = {key[i] for key in keys}
                condition &= (ds.field(name) >= min(values)) & (ds.field(name) <= max(values))
        near = list(files.get_fragments(filter=condition))
        return ds.FileSystemDataset(near, files.schema, files.format, files.filesystem)


def _shape_of(table: DeltaTable) -> Shape:
    properties = table.metadata().configuration
    if KEY_PROPERTY not in properties or TABLE_PROPERTY not in properties:
        raise Refused("the table was not created by this sink")
    columns = []
    for field in table.schema().fields:
        sql = sql_type_of_delta(str(getattr(field.type, "type", field.type)))
        # Columns of other types were added by somebody else; no event writes them.
        if not field.name.startswith(META_PREFIX) and is_known(sql):
            columns.append(Column(field.name, sql))
    source = TableId(*json.loads(properties[TABLE_PROPERTY]))
    return Shape(source, tuple(columns), tuple(json.loads(properties[KEY_PROPERTY])))


def _merge_source(changes: Changes) -> pa.Table:
    rows = changes.rows.append_column(_DELETE, pa.array([False] * changes.rows.num_rows))
    for name, written in changes.kept.items():
        rows = rows.append_column(_WRITTEN + name, written)
    gone = changes.deleted.append_column(_DELETE, pa.array([True] * changes.deleted.num_rows))
    return pa.concat_tables([rows, gone], promote_options="default")


def _update(name: str, kept: Mapping[str, pa.Array]) -> str:
    if name in kept:
        return f"CASE WHEN s.`{_WRITTEN}{name}` THEN s.`{name}` ELSE t.`{name}` END"
    return f"s.`{name}`"


def _commit(marker: Marker) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(marker.app, marker.version)])


def _literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
