"""Tables and checkpoint on S3, with Spark on separate machines: the keys of a worker, and the error without keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.object_store import ObjectStore
from dev.servers.spark_cluster import SparkCluster
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.s3.stored_sink import StoredSink
from tests.spark_sink.sink_process import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.faults]

TABLES = ("orders", "merged")


def test_keys_of_the_workers(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """Executors use the keys of their own environment, and the driver does not pass its own on. If a machine has none,
    the sink exits and reports that. Once it has them, the batch is repeated.
    """
    sink = StoredSink(broker, object_store, tmp_path, "sink-s3-cluster")
    sink.settings["tables"]["engines"] = {"*.merged": "spark"}
    schemas = [schema_of({"id": "int64", "name": "string"}, table=table) for table in TABLES]
    rows = {id: f"row {id}" for id in range(5)}
    changes = [
        change("c", {"id": id}, {"name": name}, pos=id, schema=schema, table=schema.table)
        for id, name in rows.items()
        for schema in schemas
    ]
    sink.send(schemas, changes)
    with SparkCluster() as cluster:
        worker = cluster.add_worker()
        conf = {"spark.executor.memory": "512m", "spark.task.maxFailures": "1"}
        sink.settings["spark"] |= {"master": cluster.url, "conf": sink.settings["spark"]["conf"] | conf}
        sink.write_config()
        assert 1 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        assert "a Spark job failed: OSError: " in sink.text().splitlines()[-1]
        assert "S3 error" in sink.text().splitlines()[-1]
        worker.stop()
        cluster.add_worker(environment=object_store.credentials)
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
    for table in TABLES:
        assert sorted(rows.items()) == sink.rows(f"shop_sales.{table}")
    assert not [key for key in object_store.credentials.values() if key in sink.text()]
