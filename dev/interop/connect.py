"""Run Kafka Connect: the JSON converter without a sink, and sinks into PostgreSQL."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dev.iceberg.postgres import DATABASE, PASSWORD, USER, Postgres, programs
from dev.interop.jars import JARS
from dev.interop.java_program import encoded, run_program
from dev.interop.results import SECONDS, Found, ReaderError, Rows
from dev.interop.tables import CONNECT, DEBEZIUM_CONNECT, SourceTable
from dev.servers.broker import LOOPBACK
from dev.servers.connect import ConnectWorker
from dev.servers.stack import Stack, wait_until


def json_converter(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the row of each record, as converted by the JSON converter without a sink."""
    return run_program(("connect",), "ConnectRows", tables, _lines(stack, tables))


def jdbc_upsert(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows that Debezium's JDBC sink writes from the upsert projection with the schema block."""
    return _jdbc(stack, tables, CONNECT)


def jdbc_debezium(stack: Stack, tables: Sequence[SourceTable], registry: str) -> Found:
    """Return the rows that Debezium's JDBC sink writes from the Debezium projection with the schema block."""
    return _jdbc(stack, tables, DEBEZIUM_CONNECT)


def _lines(stack: Stack, tables: Sequence[SourceTable]) -> Iterator[str]:
    for table in tables:
        yield "\t".join(("table", table.levels, *(column.name for column in table.shape.columns)))
        records = sorted(stack.records(table.topic(CONNECT)), key=lambda record: (record.partition(), record.offset()))
        for record in records:
            yield f"record\t{encoded(record.key())}\t{encoded(record.value())}"


def _jdbc(stack: Stack, tables: Sequence[SourceTable], prefix: str) -> Found:
    topics = [table.topic(prefix) for table in tables]
    with Postgres() as postgres:
        connector = {
            "name": prefix,
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": ",".join(topics),
            "connection.url": postgres.jdbc,
            "connection.username": USER,
            "connection.password": PASSWORD,
            "insert.mode": "upsert",
            "delete.enabled": "true",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
        }
        with ConnectWorker(JARS.folder() / "connect", stack.bootstrap, connector) as worker:
            group = f"connect-{prefix}"
            wait_until("the sink has read everything", SECONDS, lambda: _has_read_all(stack, worker, group, topics))
        return {table.levels: _rows(postgres, table, prefix) for table in tables}


def _has_read_all(stack: Stack, worker: ConnectWorker, group: str, topics: Sequence[str]) -> bool:
    worker.check()
    reader = Consumer({"bootstrap.servers": stack.bootstrap, "group.id": group, "log_level": 0})
    try:
        known = reader.list_topics(timeout=60).topics
        places = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]
        committed = {(one.topic, one.partition): one.offset for one in reader.committed(places, timeout=60)}
        ends = {(one.topic, one.partition): reader.get_watermark_offsets(one, timeout=60)[1] for one in places}
    except KafkaException:
        return False  # the group has no coordinator yet
    finally:
        reader.close()
    return all(committed[place] >= end for place, end in ends.items() if end)


def _rows(postgres: Postgres, table: SourceTable, prefix: str) -> Rows:
    name = table.topic(prefix).replace(".", "_").lower()  # without quotes, PostgreSQL converts names to lower case
    query = f'SELECT row_to_json(_row) FROM "{name}" _row'  # noqa: S608 - the name is one of our topics
    command = [str((programs() or Path()) / "psql"), "-h", LOOPBACK, "-p", str(postgres.settled_port()), "-U", USER]
    ran = subprocess.run(
        [*command, "-d", DATABASE, "-XAtq", "-c", query],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"PGPASSWORD": PASSWORD},
    )
    if ran.returncode:
        raise ReaderError(f"psql exited with code {ran.returncode}: {ran.stderr[-1000:]}")
    binary = [column.name for column in table.shape.columns if column.kind == "blob"]
    found = (json.loads(line, parse_float=str, parse_int=str) for line in ran.stdout.splitlines())
    return [_row(row, binary) for row in found]


def _row(row: dict[str, Any], binary: Sequence[str]) -> dict[str, Any]:
    """Return the row with bytes in base64, as the other readers return them. PostgreSQL returns a prefix and
    hexadecimal digits.
    """
    for name in binary:
        if row[name] is not None:
            row[name] = base64.b64encode(bytes.fromhex(row[name].removeprefix("\\x"))).decode()
    return row
