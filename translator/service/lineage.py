"""Describe the service to an OpenLineage receiver: one job for each raw topic, with its tables, columns and masks.

The schemas topic contains the columns of a table. Acknowledged batches show which tables are in a raw topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import msgspec
import structlog

from cdc_core.envelope import Column, TableSchema
from cdc_core.lineage import ColumnSource, Dataset, Field, JobDatasets, LineageReports, kafka_namespace
from cdc_core.table_id import joined_name
from translator.config.projections import chosen
from translator.config.settings import Settings
from translator.config.table_filter import TableFilter
from translator.message import TableName
from translator.resolution.builders import build_masks
from translator.service.metrics import BatchAccount, Metrics
from translator.translation.mask_values import TEXT
from translator.translation.table_masks import TableMasks

log = structlog.get_logger("translator")

_Table: TypeAlias = tuple[str | None, str | None, str]
"""Database, schema and table."""

_TABLES = 1000
"""Maximum number of tables that the job of a raw topic lists. Table names come from messages, so there may be many."""

_COLUMNS = 10_000
"""Maximum number of columns per raw topic that its job lists. Each output repeats them, at about 250 bytes each, and
building an event takes processor time away from messages.
"""

_NO_TYPES: Mapping[str, str] = {}

_SCHEMA = msgspec.json.Decoder(TableSchema)


def lineage_of(settings: Settings, metrics: Metrics) -> ServiceLineage | None:
    """Return the lineage of a service, or None if it is not configured."""
    if settings.lineage is None:
        return None
    failed = metrics.lineage_failures.inc
    return ServiceLineage(
        settings, LineageReports(settings.lineage, settings.kafka, "cdc-translator", log.warning, failed)
    )


class ServiceLineage:
    """The jobs of this process. A job is reported when its raw topic is added, and again when its tables or their
    columns change.
    """

    def __init__(self, settings: Settings, reports: LineageReports) -> None:
        self._group = settings.group
        self._namespace = kafka_namespace(settings.kafka.bootstrap_servers)
        self._outputs = _outputs(settings)
        self.reports = reports
        # Apart from the masks that change rows, because another thread uses these.
        self._masks = {source.name: build_masks(source, settings) for source in settings.sources}
        self._sources: dict[str, str] = {}  # by raw topic
        self._tables: dict[str, dict[_Table, None]] = {}  # by raw topic
        self._schemas: dict[tuple[str, _Table], TableSchema] = {}  # by source

    def topic_added(self, topic: str, source: str) -> None:
        """Report the job for a raw topic."""
        self._sources[topic] = source
        self._tables.setdefault(topic, {})
        self._report(topic)

    def announced(self, record: bytes) -> None:
        """Take the newest schema of a table, as the schemas topic has it."""
        try:
            schema = _SCHEMA.decode(record)
        except msgspec.MsgspecError:
            return
        table = schema.db, schema.schema, schema.table
        self._schemas[schema.source, table] = schema
        for topic, source in self._sources.items():
            if source == schema.source and table in self._tables[topic]:
                self._report(topic)

    def acknowledged(self, batch: BatchAccount) -> None:
        """Take the tables of a batch."""
        known = self._tables.get(batch.topic)
        if known is None:
            return
        before = len(known)
        for counted in batch.changes:
            if counted.table is not None and len(known) < _TABLES:
                known.setdefault((counted.db, counted.schema, counted.table))
        if len(known) > before:
            self._report(batch.topic)

    def _report(self, topic: str) -> None:
        self.reports.report(f"{self._group}.{topic}", partial(self._job, topic))

    def _job(self, topic: str) -> JobDatasets:
        """Return what a raw topic's job reads and writes. Another thread calls this."""
        source = self._sources[topic]
        tables, listed = [], 0
        for table in sorted(self._tables[topic], key=str):
            columns = self._columns(topic, table)
            listed += len(columns)
            tables.append((table, columns if listed <= _COLUMNS else []))
        written = []
        for output, selected in self._outputs.items():
            fields, sources = [], dict[str, tuple[ColumnSource, ...]]()
            for table, columns in tables:
                if selected is not None and not selected.takes(source, *table):
                    continue
                name = joined_name(*table)
                fields.append(Field(name, "struct", tuple(Field(column.name, column.type) for column, _ in columns)))
                for column, mask in columns:
                    path = f"{name}.{column.name}"
                    sources[path] = (ColumnSource(self._namespace, topic, path, mask),)
            written.append(Dataset(self._namespace, output, tuple(fields), sources))
        return JobDatasets((Dataset(self._namespace, topic),), tuple(written))

    def _columns(self, topic: str, table: _Table) -> list[tuple[Column, str | None]]:
        """Return a table's columns, each with its mask."""
        source = self._sources[topic]
        schema, masks = self._schemas.get((source, table)), self._masks[source]
        if schema is None:
            return []
        of_table = None if masks is None else masks.of_table(TableName(*table))
        return [(column, _mask_of(column, of_table)) for column in schema.columns]


def _outputs(settings: Settings) -> dict[str, TableFilter | None]:
    """Return the topics that receive events, each with its selected tables, or None for all tables."""
    canonical, single = settings.output, (one for one in settings.projections if one.template is None)
    return {
        canonical.topic: chosen(canonical.include, canonical.exclude),
        **{projection.topic: projection.tables for projection in single},
    }


def _mask_of(column: Column, masks: TableMasks | None) -> str | None:
    """Return the mask of a column in a published schema. Such a schema has the types after masking, so a rule for a
    type is assumed to match. A masked column has lost its type at the source.
    """
    if masks is None or column.native is not None:
        return None
    mask = masks.masks_of(_NO_TYPES)[column.name]
    if mask is None or (mask.rule.action in TEXT and column.type != "string"):
        return None
    return mask.rule.action
