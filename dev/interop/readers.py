"""All readers by name. Each reader returns the rows of all tables from the topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from dev.interop import clickhouse, connect, flink
from dev.interop.results import Found
from dev.interop.tables import SourceTable
from dev.servers.stack import Stack

Reader: TypeAlias = Callable[[Stack, Sequence[SourceTable], str], Found]
"""The stack, the tables, and the registry's address."""

READERS: Mapping[str, Reader] = {
    "Flink SQL, upsert-kafka": flink.upsert_kafka,
    "Flink SQL, debezium-json": flink.debezium_json,
    "Flink SQL, debezium-avro-confluent": flink.debezium_avro,
    "ClickHouse": clickhouse.replacing_table,
    "Kafka Connect, JSON converter": connect.json_converter,
    "Kafka Connect, JDBC sink, upsert projection": connect.jdbc_upsert,
    "Kafka Connect, JDBC sink, Debezium JSON": connect.jdbc_debezium,
}
