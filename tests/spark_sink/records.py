"""Build events with their real records, as a worker's task gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.table_id import TableId
from spark_sink.apply.worker import Task
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.catalog import SchemaCatalog
from spark_sink.schema.evolution import Create, TableShape
from spark_sink.schema.table_naming import TablePattern
from spark_sink.table_report import Conflict, Done, NeedsDdl, Outcome, Parked, TableCounters, TableReport
from tests.spark_sink.changes import record
from tests.spark_sink.local import decode
from tests.spark_sink.memory import MemoryTables

PATTERN = TablePattern.parse("{source}_{db}_{schema}.{table}")


def records(events: Sequence[ChangeEvent], pattern: TablePattern = PATTERN) -> pa.Table:
    """Return the records of one route, in order."""
    target = pattern.target(TableId(events[0].source, events[0].db, events[0].schema, events[0].table or ""))
    columns = {
        "partition": pa.array([0] * len(events), pa.int32()),
        "offset": pa.array(range(len(events)), pa.int64()),
        "value": pa.array(map(record, events), pa.binary()),
    }
    read = decode(pa.table(columns), pattern)
    return read.set_column(read.column_names.index("route"), "route", pa.array([target.lower()] * len(events)))


def reports(
    tables: MemoryTables,
    events: Sequence[ChangeEvent],
    rules: TableRules,
    *,
    batch: int = 0,
    schemas: Sequence[TableSchema] = (),
    pattern: TablePattern = PATTERN,
) -> list[TableReport]:
    """Return a task's report of a batch."""
    catalog = SchemaCatalog()
    for schema in schemas:
        catalog.add(schema)
    return list(Task(tables, pattern, catalog, "app", batch, rules).route(records(events, pattern)))


DONE = Done()


def report(table: str, outcome: Outcome = DONE, *, route: str = "r", bucket: int = 0, **counted: Any) -> TableReport:
    """Return a task's report of a table, with these counters."""
    return TableReport(table, route, bucket, outcome, TableCounters(**counted))


def refusal(found: TableReport) -> str:
    """Return the reason why the table was parked."""
    assert isinstance(found.outcome, Parked), found.outcome
    return found.outcome.refusal


def conflict(found: TableReport) -> str:
    """Return the difference between the table and the configuration."""
    assert isinstance(found.outcome, Conflict), found.outcome
    return found.outcome.message


def created(found: TableReport) -> TableShape:
    """Return the table that the driver must create."""
    assert isinstance(found.outcome, NeedsDdl), found.outcome
    assert isinstance(found.outcome.step, Create), found.outcome.step
    return found.outcome.step.shape
