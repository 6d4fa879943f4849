"""Write one history to several tables of one lake: `orders` by deltalake, `merged` and Iceberg's `iced` by Spark, and
`vectors` with deletion vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from spark_sink.config.table_rules import TableRules
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policies
from spark_sink.schema.layout import FileLayout
from spark_sink.schema.table_spec import Format
from tests.spark_sink.changes import schema_of
from tests.spark_sink.lake import MergingLake

# The Delta tables by engine, and all tables.
TABLES = {"orders": "fused", "merged": "spark"}
EVERY = {**TABLES, "iced": "spark", "vectors": "spark"}


def rules(policies: Policies = DEFAULTS) -> TableRules:
    engines, formats = EngineRules({"*.merged": Engine.SPARK}), {"*.iced": Format.ICEBERG}
    layouts = {"*.vectors": FileLayout.of({"features": ["deletion_vectors"]})}
    return TableRules(engines=engines, policies=policies, formats=formats, layouts=layouts)


def announce(lake: MergingLake, columns: dict[str, str], key: tuple[str, ...] = ("id",)) -> dict[str, TableSchema]:
    """Announce the schema of each table."""
    return {table: lake.announce(schema_of(columns, key, table=table)) for table in EVERY}


def both(
    events: Sequence[ChangeEvent],
    schemas: Sequence[dict[str, TableSchema]] = (),
    tables: Collection[str] = TABLES.keys(),
) -> list[ChangeEvent]:
    """Return each event once per table. A copy's schema is the one of `schemas` for its table."""
    ids = {
        schema.id: {table: named.id for table, named in pair.items()} for pair in schemas for schema in pair.values()
    }
    copies = []
    for event in events:
        for table in tables:
            schema_id = ids[event.schema_id][table] if event.schema_id else None
            copies.append(msgspec.structs.replace(event, table=table, schema_id=schema_id))
    return copies


def stored(lake: MergingLake, table: str) -> list[dict[str, Any]]:
    """Return all rows with our columns, ordered by key, for tables that are read without Spark."""
    rows: list[dict[str, Any]] = lake.stored(f"shop_sales.{table}").to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def present(lake: MergingLake, table: str) -> dict[Any, dict[str, Any]]:
    """Return what Spark reads: rows by key, without deleted rows, our columns and NULLs."""
    read = lake.read(f"shop_sales.{table}")
    rows = [row.asDict() for row in read.collect()]
    plain = [{k: v for k, v in row.items() if v is not None and not k.startswith("_cdc_")} for row in rows]
    return {row.pop("id"): row for row in plain}
