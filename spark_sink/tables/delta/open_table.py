"""Code shared by Delta tables in all modes: location, properties, and the content of deltalake's commits and
conditions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa
import pyarrow.fs as fs
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from msgspec import Struct

from spark_sink.errors import Overtaken
from spark_sink.schema.column_types import sql_type_of_delta
from spark_sink.schema.engine_choice import Choice
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_naming import shown_name
from spark_sink.tables.changes import LastSeen, Marker
from spark_sink.tables.deleted_rows import DeletedRows, marker_app
from spark_sink.tables.spark_operations import Order
from spark_sink.tables.table_properties import FLOORS_PROPERTY, shape_from

# The time for which a table's log remembers a removed file. Maintenance keeps the file for a shorter time, because it
# only deletes files that the log still contains.
REMEMBERED_PROPERTY = "delta.deletedFileRetentionDuration"
REMEMBERED = {REMEMBERED_PROPERTY: "interval 30 days"}

# The name that Spark and deltalake give to the commit that rolls back a table. This commit has a new version.
_RESTORE = "RESTORE"

# The number of commits after which deltalake writes a checkpoint. Each commit since the last checkpoint adds a quarter
# of a millisecond to opening the table, and a checkpoint costs as much as writing a small table. deltalake's default is
# 100, and Spark's is 10.
CHECKPOINT_EVERY = 10

# The columns that have statistics in the log.
STATISTICS_PROPERTY = "delta.dataSkippingStatsColumns"


def shape_of(table: DeltaTable) -> TableShape:
    return shape_from(table.metadata().configuration, types_of(table))


def types_of(table: DeltaTable) -> dict[str, str]:
    """Return each column's Spark SQL type. For types that no event can have, return the name that the log uses."""
    fields = table.schema().fields
    return {field.name: sql_type_of_delta(str(getattr(field.type, "type", field.type))) for field in fields}


def floors_of(table: DeltaTable) -> Mapping[str, str]:
    stored = table.metadata().configuration.get(FLOORS_PROPERTY)
    return json.loads(stored) if stored else {}


class DeltaOpened:
    """An open Delta table that belongs to the sink."""

    orders: Sequence[Order] = ()

    # The markers in the newest commit, with the table version.
    _newest: tuple[int, Mapping[str, int]] | None = None

    def __init__(self, table: DeltaTable, shape: TableShape, choice: Choice) -> None:
        self._table = table
        self.shape = shape
        self.choice = choice

    @property
    def version(self) -> int:
        return self._table.version()

    def applied(self, app: str) -> int | None:
        if self._newest is None or self._newest[0] != self.version:
            self._newest = self.version, markers_of_newest_commit(self._table)
        known = self._newest[1].get(app)
        return self._table.transaction_version(app) if known is None else known

    def deleted_rows_in(self, warehouse: str, name: str) -> DeletedRows:
        """Return the deleted rows of this table, if it is a mirror with this name."""
        # The files of a shadow's deleted rows become the table's, so they are next to the table from the beginning.
        generation = self.applied(marker_app(self.shape))
        return DeletedRows(warehouse, shown_name(name), self.shape, generation)

    def follows(self, seen: LastSeen) -> bool:
        newer = self.version - seen.version
        if newer <= 0:
            return newer == 0
        return all(one.get("operation") != _RESTORE for one in self._table.history(newer))


def storage_of(table: DeltaTable, sizes: Mapping[str, int] | None = None) -> fs.FileSystem:
    """Return a table's folder, with the storage options with which the table was opened.

    Args:
        sizes: the sizes of some files in bytes. For any other file, opening the file is a request to the object store.
    """
    known = None if sizes is None else dict(sizes)
    return fs.PyFileSystem(DeltaStorageHandler.from_table(table._table, known_sizes=known))


def markers_of_newest_commit(table: DeltaTable) -> Mapping[str, int]:
    """Return the markers in the commit that made the table's version, as far as they are certain.

    Usually, the sink made the newest commit of a table, so the markers that it looks up are in that commit. For each
    marker that is not, deltalake reads all commits since the last checkpoint.
    """
    path = f"_delta_log/{table.version():020}.json"
    try:
        with storage_of(table).open_input_file(path) as file:
            actions = [msgspec.json.decode(line, type=_Action) for line in file.read().splitlines() if line]
    except FileNotFoundError:  # the log has only a checkpoint of this version
        return {}
    # A marker with a time may have expired.
    return {one.txn.app_id: one.txn.version for one in actions if one.txn is not None and one.txn.last_updated is None}


class _Transaction(Struct, rename="camel"):
    app_id: str
    version: int
    last_updated: int | None = None


class _Action(Struct):
    """A line of a commit, as far as it is needed."""

    txn: _Transaction | None = None


def create(path: str, schema: Schema | pa.Schema, properties: Mapping[str, str], parted_by: Sequence[str] = ()) -> None:
    """Create a table, unless it exists. The commit must be version 0.

    If another commit came first, deltalake would retry and create a new table over the existing table, with a new id
    and without columns that were added in the meantime. If the folder already contains someone else's table, this is
    detected when the table is opened.
    """
    once = CommitProperties(max_commit_retries=0)
    try:
        DeltaTable.create(
            path,
            schema,
            mode="ignore",
            partition_by=list(parted_by),
            configuration=properties,
            raise_if_key_not_exists=False,
            commit_properties=once,
        )
    except CommitFailedError:
        if not DeltaTable.is_deltatable(path):
            raise


def commit(*markers: Marker, metadata: Mapping[str, str] | None = None, retries: int | None = None) -> CommitProperties:
    """Return the properties for a commit.

    Args:
        metadata: the metadata to store in the table's log.
        retries: how many times deltalake retries after another commit that it considers compatible, or None for its
            default.
    """
    custom = dict(metadata) if metadata is not None else None
    transactions = [Transaction(*marker) for marker in markers]
    return CommitProperties(custom_metadata=custom, max_commit_retries=retries, app_transactions=transactions)


def hooks(table: DeltaTable) -> PostCommitHookProperties:
    """Return what deltalake does after the next commit of a table. It writes a checkpoint if one is due, and then also
    deletes expired commits. By default, deltalake would list the log for them after every commit.
    """
    # The checkpoints of the sink's tables have versions that end in 9.
    writes_checkpoint = (table.version() + 2) % CHECKPOINT_EVERY == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if writes_checkpoint else False)


@contextmanager
def committing(table: DeltaTable, *markers: Marker) -> Iterator[None]:
    """Make a commit whose response may get lost. If the response gets lost, deltalake retries, and conflicts with its
    own first attempt.

    The first marker shows whether the commit was made.

    Raises:
        Overtaken: another commit came first.
    """
    try:
        yield
    except CommitFailedError as error:
        table.update_incremental()
        for app, version in markers[:1]:
            made = table.transaction_version(app)
            if made is not None and made >= version:
                return
        raise Overtaken(f"the table {table.table_uri}") from error


def keep_properties(table: DeltaTable, properties: Mapping[str, str]) -> None:
    """Set properties in a separate commit. If the response gets lost, the table's properties show whether the commit
    was made.

    Raises:
        Overtaken: another commit came first.
    """
    try:
        with committing(table):
            table.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
    except Overtaken:
        if not properties.items() <= table.metadata().configuration.items():
            raise


def literal(text: str) -> str:
    """Return a text literal in deltalake's SQL. Spark uses different quoting."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
