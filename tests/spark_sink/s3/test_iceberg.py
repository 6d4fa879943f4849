"""Iceberg tables on S3 in a REST catalog: the sink as a separate process, and all of its commands."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from dev.iceberg.rest_catalog import TOKEN, RestCatalogServer
from dev.servers.broker import Broker
from dev.servers.object_store import ACCESS_KEY, BUCKET, SECRET_KEY, ObjectStore
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.s3.stored_sink import StoredSink
from tests.spark_sink.s3.test_sink import command
from tests.spark_sink.sink_process import PATIENCE_SECONDS, wait

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NAME = "shop_sales.orders"
COLUMNS = {"id": "int64", "name": "string"}
TOPIC = "sink-s3-iceberg"


def test_all_commands_and_a_kill(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """Runs from one checkpoint, one of them killed, leave the table right. Each command finds it by name, another
    client reads the same rows, and no secret is in the log.
    """
    files = {
        "fs.s3a.endpoint": object_store.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": ACCESS_KEY,
        "fs.s3a.secret.key": SECRET_KEY,
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    with RestCatalogServer(warehouse=f"s3://{BUCKET}/{TOPIC}/iceberg", hadoop=files) as catalog:
        sink = StoredSink(broker, object_store, tmp_path, TOPIC)
        sink.settings["tables"]["formats"] = {"*": "iceberg"}
        sink.settings["tables"]["iceberg_catalog"] = {
            "type": "rest",
            "uri": catalog.url,
            "properties": {"token": "${CATALOG_TOKEN}"},
        }
        sink.secrets["CATALOG_TOKEN"] = TOKEN
        sink.write_config()
        said = command(sink, "check", "--connect")
        assert f"tables.iceberg_catalog: {catalog.url} answers" in said

        left = _left_behind(object_store)
        schema = schema_of(COLUMNS)
        rows = {id: f"row {id}" for id in range(1, 4)}
        sink.send([schema], [change("c", {"id": id}, {"name": name}, pos=id) for id, name in rows.items()])
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert "iceberg catalog" in [line["event"] for line in sink.log()]
        assert left.exists(), "a new table has no old files, so its first vacuum waits"
        assert sorted(rows.items()) == _rows(catalog, object_store)

        sink.send([], [change("u", {"id": 1}, {"name": "new"}, pos=10), change("d", {"id": 2}, pos=11)])
        running = sink.start()
        wait(lambda: any(line["event"] == "engine chosen" for line in sink.log()), running)
        running.kill()
        running.wait()
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        rows = {1: "new", 3: "row 3"}
        assert sorted(rows.items()) == _rows(catalog, object_store)

        status = json.loads(command(sink, "status", "--json"))
        cut = json.loads(command(sink, "cut"))
        newest = _table(catalog, object_store).metadata.current_snapshot_id
        assert [(NAME, newest)] == [(table["table"], table["version"]) for table in status["tables"]]
        assert {NAME: newest} == cut["tables"]
        assert "FROM `lake`.`shop_sales`.`orders`" in command(sink, "view", NAME, "--from", "lake.shop_sales.orders")
        assert NAME in command(sink, "maintain", NAME, "--dry-run")
        for asked in (["maintain"], ["sweep", NAME, "--before", "9999"], ["park", NAME]):
            command(sink, *asked)
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert [] == json.loads(command(sink, "status", "--json"))["open_commands"]
        assert not left.exists(), sink.text()
        assert "COMMAND" in command(sink, "status")
        assert [] == _rows(catalog, object_store)
        command(sink, "resume", NAME)
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert "COMMAND" not in command(sink, "status")
        assert TOKEN not in sink.text()
        assert SECRET_KEY not in sink.text()


def _left_behind(store: ObjectStore) -> Path:
    """Leave a file like that of a writer that died before its commit eight days ago."""
    data = store.directory / "objects" / BUCKET / TOPIC / "iceberg" / "shop_sales" / "orders" / "data"
    data.mkdir(parents=True)
    made = data / "died.parquet"
    made.write_bytes(b"PAR1")
    then = time.time() - 8 * 86_400
    os.utime(made, (then, then))
    return made


def _table(catalog: RestCatalogServer, store: ObjectStore) -> Table:
    keys = {"s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY, "s3.region": "us-east-1"}
    properties = {"uri": catalog.url, "token": TOKEN, "s3.endpoint": store.endpoint, **keys}
    return load_catalog("any", type="rest", **properties).load_table(NAME)


def _rows(catalog: RestCatalogServer, store: ObjectStore) -> list[tuple[int, str]]:
    found = _table(catalog, store).scan().to_arrow()
    return sorted(zip(*(found.column(name).to_pylist() for name in ("id", "name")), strict=True))
