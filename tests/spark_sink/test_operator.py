"""What an operator does with a sink: commands while it is down and while it runs, a lost checkpoint, wrong bytes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from deltalake import DeltaTable

from dev.broker import Broker
from tests.spark_sink.changes import OTHER_SCOPE, change, record, schema_of
from tests.spark_sink.test_job import PATIENCE_SECONDS, Sink, wait

ITEMS = "shop_sales.items"
# A source table whose name differs from another one's by case only.
SHOUTED = "shop/sales//ORDERS"


class Operator:
    """The command line, beside a sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "spark_sink", *arguments, "-c", str(self.sink.config)]
        environment = self.sink.environment()
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return found | {"tables": {table["table"]: table for table in found["tables"]}}

    def settings(self, **sections: dict[str, object]) -> None:
        loaded = yaml.safe_load(self.sink.config.read_text())
        for name, values in sections.items():
            loaded.setdefault(name, {}).update(values)
        self.sink.config.write_text(yaml.safe_dump(loaded))


@pytest.mark.integration
def test_an_operators_day(broker: Broker, tmp_path: Path, free_port: int) -> None:
    """C14, C16: bytes of others stop nothing. The checkpoint is deleted while a table is parked: reading goes on where
    the manifest ends, nothing is lost, nothing is there twice. Commands are obeyed at the next start, and while the
    topic is at rest."""
    sink = Sink(broker, tmp_path, "operator")
    operator = Operator(sink)
    orders = schema_of({"id": "int64", "name": "string"})
    items = schema_of({"id": "int64"}, table="items")
    foreign = [None, b"", b"\x00\x00\x00\x00\x07other", b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08", b'{"v":1}']
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in foreign:
        producer.produce(sink.topic, value, partition=1)
    producer.produce(sink.topic, record(change("c", {"id": 7}, {"name": "x"}, pos=1))[:-30], partition=1)
    assert 0 == producer.flush(PATIENCE_SECONDS)
    bad = [
        change("c", {"id": None}, {"name": "no key"}, pos=50, schema=orders),
        change("c", {"id": 2**63}, {"name": "too large"}, pos=51, schema=orders),
    ]
    two_scopes = [
        change("c", {"id": 1}, {}, pos=60, schema=items, table="items"),
        change("c", {"id": 2}, {}, pos=1, schema=items, table="items", scope=OTHER_SCOPE),
        change("t", None, pos=61, table="items"),
        change("c", {"id": 3}, {}, pos=62, schema=items, table="items"),
    ]
    some = [change("c", {"id": n}, {"name": f"row {n}"}, pos=n, schema=orders) for n in range(20)]
    shouted = schema_of({"id": "int64", "name": "string"}, table="ORDERS")
    clash = change("c", {"id": 1}, {"name": "shouted"}, pos=80, schema=shouted, table="ORDERS")
    sink.send([orders, items, shouted], [*some, *bad, *two_scopes, clash])
    assert "no sink has run on this warehouse" in operator.run("resume", ITEMS).stderr
    first = sink.start("--available-now")
    assert 0 == first.wait(PATIENCE_SECONDS), (tmp_path / "log").read_text()[-3000:]
    assert [(n, f"row {n}") for n in range(20)] == sink.rows()
    found = operator.status()
    assert {"UNDECODABLE": len(foreign) + 1} == found["no_table"]
    assert {"KEY_INVALID": 1, "KEY_UNKNOWN": 1} == found["tables"]["shop_sales.orders"]["quarantined"]
    assert ("TRUNCATE_SCOPES", 2) == tuple(found["tables"][ITEMS][name] for name in ("parked", "waiting"))
    assert ("TABLE_CLASH", 1) == tuple(found["tables"][SHOUTED][name] for name in ("parked", "waiting"))
    listed = operator.run("quarantine", "ls", "--reason", "KEY_UNKNOWN", "--table", "shop_sales.orders").stdout
    assert ["KEY_UNKNOWN", "shop_sales.orders", "0@20", "shop/raw/0/50/0"] == listed.split("\t")[:4]
    assert (
        "unknown reason 'KEY_UNKNOW' (did you mean KEY_UNKNOWN?)"
        in operator.run("quarantine", "ls", "--reason", "KEY_UNKNOW").stderr
    )

    assert 0 == operator.run("resume", ITEMS).returncode
    assert 0 == operator.run("resume", SHOUTED).returncode
    rename = {SHOUTED: "shop_sales.shouted"}
    operator.settings(tables={"truncate": "all_scopes", "rename": rename}, metrics={"port": free_port})
    shutil.rmtree(tmp_path / "checkpoint")
    sink.send([], [change("u", {"id": 3}, {"name": "patched"}, pos=70, full=False, schema=orders)])
    service = sink.start()
    try:
        wait(lambda: "batch applied" in {line["event"] for line in sink.log()}, service)
        assert (3, "patched") in sink.rows()
        log = {line["event"]: line for line in sink.log()}
        assert {"0": 27, "1": 6} == log["checkpoint is empty; reading goes on where the manifest ends"]["offsets"]
        assert 1 == log["batch applied"]["events"]
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics") as scraped:
            assert 'cdc_sink_commits_total{table="shop_sales.orders"} 1.0' in scraped.read().decode().splitlines()
        items_now = DeltaTable(str(tmp_path / "warehouse" / "shop_sales" / "items")).to_pyarrow_table()
        assert [3] == [row["id"] for row in items_now.to_pylist() if row["_cdc_deleted_at"] is None]
        told = [operator.run(command, ITEMS, "--wait", "240") for command in ("park", "resume", "resume")]
        assert ["parked\n", "0 events replayed\n", "it was not parked\n"] == [ended.stdout for ended in told]
        failed = operator.run("park", "shop_sales.item", "--wait", "240")
        assert (2, "(did you mean shop_sales.items?)" in failed.stderr) == (failed.returncode, True)
        assert [(1, "shouted")] == sink.rows("shop_sales.shouted")
        service.send_signal(signal.SIGTERM)
        assert 0 == service.wait(PATIENCE_SECONDS), (tmp_path / "log").read_text()[-3000:]
    finally:
        service.kill()
    found = operator.status()
    assert {None} == {table["parked"] for table in found["tables"].values()}
    assert ({"UNDECODABLE": len(foreign) + 1}, []) == (found["no_table"], found["open_commands"])
    assert 20 == len(sink.rows())
