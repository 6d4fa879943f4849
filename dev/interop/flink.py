"""Run Flink SQL with the statement from docs/consumers.md for each table, and with variants of this statement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dev.interop.java_program import encoded, run_program
from dev.interop.results import Found, ReaderError
from dev.interop.tables import DEBEZIUM, DEBEZIUM_AVRO, ROWS, SourceTable
from dev.servers.stack import Stack

_PAGE = Path(__file__).parents[2] / "docs" / "consumers.md"
_PAGE_TOPIC = f"{ROWS}.canal.shop.orders"

OPENED = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang",
        "java.util",
        "java.time",
        "java.util.concurrent",
        "java.nio",
        "java.net",
        "java.io",
        "java.math",
    )
)
"""JVM options that open the same packages as the scripts of Flink 1.20 do for Java 17."""

_TYPES: Mapping[str, str] = {
    "bigint": "BIGINT",
    "int": "INT",
    "decimal": "DECIMAL(14, 2)",
    "varchar": "STRING",
    "datetime": "TIMESTAMP(6)",
    "date": "DATE",
    "double": "DOUBLE",
    "blob": "BYTES",
}
_AVRO_TYPES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "int8": "INT",
    "int16": "INT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bytes": "BYTES",
}
"""Flink types by canonical type. A decimal keeps its precision and scale. Everything else is text (docs/debezium.md).
"""

_JSON = "'value.json.timestamp-format.standard' = 'ISO-8601'"
_FORMATS = f"'key.format' = 'json', 'value.format' = 'json', {_JSON}"


def upsert_kafka(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows from the upsert projection, read with the statement from docs/consumers.md."""
    return _run(tables, [flink_statement(stack.bootstrap, table) for table in tables])


def debezium_json(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows from the Debezium projection."""
    return _run(tables, [debezium_statement(stack.bootstrap, table) for table in tables])


def debezium_avro(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows from the Debezium projection in Avro, with schemas from a registry."""
    return _run(tables, [avro_statement(stack.bootstrap, table, registry) for table in tables])


def flink_statement(bootstrap: str, table: SourceTable | None = None) -> str:
    """Return the statement from docs/consumers.md, for a bounded topic.

    Args:
        table: the table to use in place of the one on the page.

    Raises:
        ReaderError: the page does not have the statement.
    """
    section = _PAGE.read_text(encoding="utf-8").partition("\n## Flink SQL\n")[2]
    found = re.search(r"^```sql\n(CREATE TABLE orders \(\n.*?\n\)) (WITH \(.*?)\)\n^```$", section, re.M | re.S)
    if found is None or _PAGE_TOPIC not in found[2]:
        raise ReaderError("docs/consumers.md has no statement for Flink")
    columns, options = found[1], found[2].strip().replace("broker:9092", bootstrap)
    if table is not None:
        columns = _columns(table, {column.name: _TYPES[column.kind] for column in table.shape.columns})
        options = options.replace(_PAGE_TOPIC, table.topic(ROWS))
    return f"{columns} {options}, 'scan.bounded.mode' = 'latest-offset', 'properties.group.id' = 'interop')"


def debezium_statement(bootstrap: str, table: SourceTable | None = None) -> str:
    """Return the statement for the Debezium projection.

    Raises:
        ReaderError: the page has a different statement.
    """
    of_debezium = "'format' = 'debezium-json', 'debezium-json.timestamp-format.standard' = 'ISO-8601'"
    return _of_changes(flink_statement(bootstrap, table), of_debezium, DEBEZIUM)


def avro_statement(bootstrap: str, table: SourceTable, registry: str) -> str:
    """Return the statement for Avro. The columns have the types from the registry's schema.

    Raises:
        ReaderError: the page has a different statement.
    """
    types = {column.name: avro_type(table, column.name) for column in table.shape.columns}
    statement = flink_statement(bootstrap, table)
    declared = _columns(table, {column.name: _TYPES[column.kind] for column in table.shape.columns})
    statement = statement.replace(declared, _columns(table, types))
    of_avro = f"'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = '{registry}'"
    return _of_changes(statement, of_avro, DEBEZIUM_AVRO)


def avro_type(table: SourceTable, column: str) -> str:
    """Return the Flink type for a column in an Avro record."""
    canonical = table.types[column]
    if canonical.startswith("decimal(") and column not in table.shape.key:
        return canonical.upper()
    if column in table.shape.key and canonical.startswith("int"):
        return "BIGINT"
    return _AVRO_TYPES.get(canonical, "STRING")


def _columns(table: SourceTable, types: Mapping[str, str]) -> str:
    declared = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    keyed = ", ".join(f"`{name}`" for name in table.shape.key)
    return f"CREATE TABLE {table.shape.name} (\n  {declared},\n  PRIMARY KEY ({keyed}) NOT ENFORCED\n)"


def _of_changes(statement: str, formats: str, prefix: str) -> str:
    for found, instead in (
        (_FORMATS, formats),
        ("'connector' = 'upsert-kafka'", "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset'"),
        (f"'topic' = '{ROWS}.", f"'topic' = '{prefix}."),
    ):
        if found not in statement:
            raise ReaderError(f"docs/consumers.md has no {found} in its statement for Flink")
        statement = statement.replace(found, instead)
    return statement


def _run(tables: Sequence[SourceTable], statements: Sequence[str]) -> Found:
    lines = [
        f"{table.levels}\t{table.shape.name}\t{len(table.shape.key)}\t{encoded(statement.encode())}"
        for table, statement in zip(tables, statements, strict=True)
    ]
    return run_program(("flink",), "FlinkRows", tables, lines, OPENED)
