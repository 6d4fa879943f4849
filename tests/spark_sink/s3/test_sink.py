"""Tables and checkpoint on S3 work as in a folder, and no key is visible anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.object_store import BUCKET, SECRET_KEY, ObjectStore
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.s3.stored_sink import StoredSink
from tests.spark_sink.sink_process import PATIENCE_SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.faults]

COLUMNS = {"id": "int64", "name": "string"}
TABLES = ("orders", "merged", "vectors")


def test_both_engines_and_all_commands(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """Two runs from one checkpoint leave all tables right, with and without deletion vectors, and each command finds
    them.
    """
    sink = StoredSink(broker, object_store, tmp_path, "sink-s3")
    sink.settings["tables"]["engines"] = {"*.merged": "spark"}
    sink.settings["tables"]["layout"] = {"*.vectors": {"features": ["deletion_vectors"]}}
    sink.write_config()
    schemas = [schema_of(COLUMNS, table=table) for table in TABLES]
    rows = {}
    for first in (1, 3):
        new = {id: f"row {id} of {first}" for id in range(first, first + 3)}
        rows |= new
        changes = [
            change("c", {"id": id}, {"name": name}, pos=10 * first + id, schema=schema, table=schema.table)
            for id, name in new.items()
            for schema in schemas
        ]
        sink.send(schemas, changes)
        assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
        for table in TABLES:
            assert sorted(rows.items()) == sink.rows(f"shop_sales.{table}")
    assert SECRET_KEY not in sink.text()

    status = json.loads(command(sink, "status", "--json"))
    assert [f"shop_sales.{table}" for table in sorted(TABLES)] == [table["table"] for table in status["tables"]]
    cut = json.loads(command(sink, "cut"))
    assert {f"shop_sales.{table}": sink.table(f"shop_sales.{table}").version() for table in TABLES} == cut["tables"]
    assert f"delta.`s3a://{BUCKET}/" in command(sink, "view", "shop_sales.orders")
    assert "shop_sales.orders" in command(sink, "maintain", "shop_sales.orders", "--dry-run")
    for asked in (["maintain"], ["sweep", "shop_sales.orders", "--before", "9999"], ["park", "shop_sales.merged"]):
        command(sink, *asked)
    assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()
    assert [] == json.loads(command(sink, "status", "--json"))["open_commands"]
    assert "COMMAND" in command(sink, "status")


def test_check_asks_the_store(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """All answers are good, and nothing is left behind. If a bucket is missing, its questions report that, and the
    others are answered as before.
    """
    sink = StoredSink(broker, object_store, tmp_path, "sink-s3-checked")
    said = command(sink, "check", "--connect")
    assert {"ok"} == {line.split()[0] for line in said.splitlines()}
    assert f"tables.warehouse: s3a://{BUCKET}/sink-s3-checked/warehouse is writable" in said
    left = object_store.directory / "objects" / BUCKET / "sink-s3-checked"
    assert [] == [path for path in left.rglob("*") if path.is_file()]

    for setting in (sink.settings["tables"], sink.settings):
        key = "warehouse" if "warehouse" in setting else "checkpoint"
        setting[key] = f"s3a://nowhere/{key}"
    sink.write_config()
    done = _run_command(sink, "check", "--connect")
    wrong = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert 1 == done.returncode, done.stderr
    assert ["WRONG  tables.warehouse", "WRONG  checkpoint"] == [line.partition(":")[0] for line in wrong[:2]]
    assert all("NoSuchBucket" in line and "s3a://nowhere/" in line for line in wrong[:2])
    assert "Traceback" not in done.stderr


def command(sink: StoredSink, *words: str) -> str:
    """Return the output of a command."""
    done = _run_command(sink, *words)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def _run_command(sink: StoredSink, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "spark_sink", *words, "-c", str(sink.config)]
    return subprocess.run(program, capture_output=True, text=True, check=False, env=sink.environment())


def run(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert 0 == done.returncode, done.stderr
    return done.stdout


# Print everything that a session shows of its settings, including its web page.
_SHOWN = """
import sys, urllib.request
from pathlib import Path
from spark_sink.spark import session as spark_session
from spark_sink.commands.configuration import configured
settings = configured(Path(sys.argv[1]))
warehouse = settings.tables.warehouse
spark = spark_session.build("shown", settings.spark, warehouse, settings.storage.spark_conf(warehouse, warehouse))
print(spark.sparkContext.getConf().toDebugString())
print(spark.sql("SET -v").collect())
for page in ("environment", "api/v1/applications/" + spark.sparkContext.applicationId + "/environment"):
    print(urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/" + page).read().decode())
spark.stop()
"""


def test_no_key_where_anybody_looks(broker: Broker, object_store: ObjectStore, tmp_path: Path) -> None:
    """Spark's settings, web page and API show the store's address but neither key."""
    sink = StoredSink(broker, object_store, tmp_path, "sink-s3-shown")
    sink.settings["spark"]["conf"] |= {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    sink.write_config()
    shown = run([sys.executable, "-c", _SHOWN, str(sink.config)], sink.environment())
    assert object_store.endpoint in shown
    assert "fs.s3a.secret.key" in shown  # Spark takes the keys from the environment and shows asterisks
    assert [] == [key for key in object_store.credentials.values() if key in shown]
