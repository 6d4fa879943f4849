"""The SQL of docs/consumers.md runs in DuckDB and produces the rows of a shop. Its versions match the installed."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from dev.demo.shop import LINES, ORDERS
from dev.demo.sources import shop_sources
from dev.interop import clickhouse
from dev.interop.flink import avro_statement, debezium_statement, flink_statement
from dev.interop.tables import SourceTable
from tests.cdc_core.reader.sources import Translated, translated
from tests.repository.pages import ROOT, blocks, page, section
from translator.codecs import Codec, build
from translator.codecs.json import JsonCodec

COLUMNS = ("id", "state", "total", "placed")
CONSUMERS = page("consumers.md")


def lines(codec: Codec, events: list[Translated]) -> Iterator[str]:
    """Return the records of a projection in the form that the page expects."""
    records = [record for event, schema in events for record in codec.encode(event, schema)]
    for offset, record in enumerate(records):
        texts = {"key": record.key, "value": record.value}
        line = {name: None if text is None else text.decode() for name, text in texts.items()}
        yield json.dumps({**line, "offset": offset}) + "\n"


def rows(sql: str, folder: Path) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = duckdb.sql(re.sub(r"'(\w+\.jsonl)'", rf"'{folder}/\1'", sql)).fetchall()
    return found


def test_duckdb(tmp_path: Path) -> None:
    """Both queries handle changed keys, deletes and, where the format supports it, truncates."""
    source = shop_sources(41)[3]
    events = translated(source, source.messages(400, grow=False))
    rows_there = source.shop.rows["orders"]
    wanted = sorted(tuple(row[name] for name in COLUMNS) for row in rows_there.values())
    assert len(wanted) > 5
    upsert, canonical = blocks(section(CONSUMERS, "DuckDB"), "sql")
    (tmp_path / "rows.jsonl").write_text("".join(lines(build("upsert", {}), events)))
    assert wanted == rows(upsert, tmp_path)
    for more, left in (([], wanted), (_truncate(events), [])):
        (tmp_path / "events.jsonl").write_text("".join(lines(JsonCodec(), events + more)))
        assert left == rows(canonical, tmp_path)


def _truncate(events: list[Translated]) -> list[Translated]:
    (last, _) = next(found for found in reversed(events) if found[0].table == "orders")
    empty = dict.fromkeys(("key", "key_old", "before", "after"))
    return [(msgspec.structs.replace(last, op="t", **empty), None)]


VERSIONS = {"Spark": "pyspark", "`cdc_core.reader`": "fastavro", "Python, Apache Avro": "avro", "DuckDB": "duckdb"}


@pytest.mark.parametrize("reader", VERSIONS)
def test_versions(reader: str) -> None:
    """The page lists the versions that the tests run with."""
    (line,) = [line for line in CONSUMERS.splitlines() if line.startswith("|") and reader in line.split("|")[1]]
    assert importlib.metadata.version(VERSIONS[reader]) in line.split("|")[2]


def test_versions_of_interop() -> None:
    """The page lists the versions that `make interop` runs."""
    wanted = dict(re.findall(r'name="([\w-]+)" rev="([\d.]+)', (ROOT / "dev" / "interop" / "jars.xml").read_text()))
    told = {
        name: f"| {wanted[jar]}"
        for name, jar in (
            ("upsert-kafka", "flink-json"),
            ("JSON converter", "connect-json"),
            ("JDBC sink", "connect-runtime"),
        )
    }
    assert [] == [
        name for name, version in told.items() if not re.search(rf"{name}.*{re.escape(version)}\b", CONSUMERS)
    ]
    assert f"Kafka connector {wanted['flink-sql-connector-kafka']}" in CONSUMERS
    assert f"version {wanted['flink-sql-avro-confluent-registry']} of the format" in CONSUMERS
    assert f"sink {wanted['debezium-connector-jdbc']}Final" in CONSUMERS
    assert f"chdb {clickhouse.VERSION}" in CONSUMERS


def test_statements_of_interop() -> None:
    """`make interop` finds the Flink statement on the page and derives the other statement from it."""
    assert "'upsert-kafka', 'topic' = 'rows.canal.shop.orders'" in flink_statement("here:1")
    assert "'topic' = 'debezium.canal.shop.orders'" in debezium_statement("here:1")
    assert "'debezium-json'" in debezium_statement("here:1")
    assert "'properties.bootstrap.servers' = 'here:1'" in debezium_statement("here:1")


def test_statements_in_avro() -> None:
    """Columns get their types from the registry schema: wide keys, times as text, decimals with their scale."""
    types = {
        "id": "int32",
        "customer_id": "int64",
        "total": "decimal(14,2)",
        "placed": "timestamp",
        "signature": "bytes",
    }
    table = SourceTable("canal", ORDERS, "canal.shop.orders", {**types, "state": "string"}, ())
    statement = avro_statement("here:1", table, "http://there:2")
    assert (
        "`id` BIGINT, `customer_id` BIGINT, `state` STRING, `total` DECIMAL(14,2), `placed` STRING, `signature` BYTES"
    ) in statement
    assert "'debezium-avro-confluent.url' = 'http://there:2'" in statement
    assert "'topic' = 'avro.canal.shop.orders'" in statement
    assert flink_statement("here:1") == flink_statement("here:1", table), "the page has the columns of that table"


def test_statements_of_clickhouse() -> None:
    """The ClickHouse statements of the page work for any table."""
    _, create, insert, select = clickhouse.clickhouse_statements(LINES, Path("there.jsonl"))
    assert "CREATE TABLE order_lines (" in create
    assert "ORDER BY (order_id, line)" in create
    assert "'there.jsonl'" in insert
    for statement in (create, insert):
        assert "order_id Int64, line Int32, sku Nullable(String)" in statement
    assert select.endswith("FROM order_lines FINAL")
