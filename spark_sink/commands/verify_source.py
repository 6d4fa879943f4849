"""`spark-sink verify --against`: compare a table with its source."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdc_core.kafka_settings import librdkafka_options
from cdc_core.table_id import TableId
from spark_sink.config.settings import Settings
from spark_sink.control_tables.batches import BatchTable
from spark_sink.errors import ConfigError, unknown
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.events.topic_records import read_range
from spark_sink.operations.source_database import DatabaseSource
from spark_sink.operations.source_rows import RowSource, file_rows, table_rows
from spark_sink.operations.verify import Verified, as_mirror
from spark_sink.operations.verify_source import ComparedSource, SourceComparison, compared_columns
from spark_sink.schema.catalog import SchemaReader
from spark_sink.tables.delta.control_tables import ParkedTables
from spark_sink.tables.protocols import MirrorTable

if TYPE_CHECKING:
    from spark_sink.tables.formats import FormatTables

# The sink may need this time to apply the events that were in the topic when the second pass was due.
_PATIENCE_SECONDS = 600.0


class AgainstSource(NamedTuple):
    """The result of a comparison, and the reason for each column that was not compared."""

    found: Verified
    columns_left_out: Mapping[str, str]


def verify_against(
    loaded: Settings, tables: FormatTables, table: str, against: str, skipped: Collection[str], settle: float
) -> AgainstSource:
    """Compare a mirror with a source.

    Args:
        settle: the number of seconds a change takes to reach the canonical topic.
    """
    shape = mirror(tables, table).shape
    source = _source(loaded, tables, against, shape.table)
    columns, left_out = compared_columns(shape, source, skipped)
    comparison = SourceComparison(
        lambda: mirror(tables, table), source, columns, lambda: catch_up(loaded, table, settle)
    )
    return AgainstSource(comparison.run(), left_out)


def mirror(tables: FormatTables, table: str) -> MirrorTable:
    """Return a mirror's newest version.

    Raises:
        ConfigError: the table is not a mirror.
    """
    return as_mirror(tables.open(table), table)


def _source(loaded: Settings, tables: FormatTables, against: str, source: TableId) -> ComparedSource:
    kind, _, name = against.partition(":")
    kinds: Mapping[str, Callable[[], ComparedSource]] = {
        "database": lambda: _database(loaded, name, source),
        "file": lambda: RowSource(lambda: file_rows(Path(name))),
        "table": lambda: RowSource(lambda: table_rows(mirror(tables, name))),
    }
    if kind not in kinds or not name:
        raise ConfigError(f"--against: expected database:NAME, file:PATH, table:NAME or checksums, but got {against!r}")
    return kinds[kind]()


def _database(loaded: Settings, name: str, source: TableId) -> ComparedSource:
    if source.source == SEVERAL:
        raise ConfigError("--against: a table that several source tables share cannot be compared with a database")
    if name not in loaded.sources:
        raise ConfigError(f"--against: {unknown('database', name, loaded.sources)} (setting `sources`)")
    return DatabaseSource(name, loaded.sources[name], source)


def catch_up(loaded: Settings, table: str, settle: float) -> bool:
    """Wait until all changes that the source has made so far are in the topic and in a table. Return whether they
    are.
    """
    time.sleep(settle)
    options, topic = librdkafka_options(loaded.kafka), loaded.input.topic
    with closing(SchemaReader(options, loaded.input.schemas)) as reader:
        begins, ends = reader.begins(topic), reader.ends(topic)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        reached = BatchTable(loaded.tables.warehouse, loaded.pipeline, "", topic).reached()
        begins = {partition: max(begin, reached.get(partition, 0)) for partition, begin in begins.items()}
        with closing(read_range(options, topic, begins, ends)) as backlog:
            if next(backlog, None) is None:
                return table not in ParkedTables(loaded.tables.warehouse, loaded.pipeline).held()
        time.sleep(1)
    return False
