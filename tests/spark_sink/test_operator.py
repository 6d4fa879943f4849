"""The whole sink, started as in production, with the real broker: faults, and what an operator does about them. There
are malformed bytes, a crash, signals, a lost checkpoint, and commands while it is down and while it runs.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import Producer

from cdc_core.table_id import TableId
from dev.servers.broker import Broker
from spark_sink.commands import cli, main
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.schema.table_spec import Format
from tests.otlp_receiver import TOKEN, receiver
from tests.spark_sink.changes import OTHER_SCOPE, change, record, schema_of
from tests.spark_sink.local import local_ddl
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink, family, wait

ITEMS, RETURNS = "shop_sales.items", "shop_sales.returns"
# A source table whose name differs from another one only in case.
SHOUTED = "shop/sales//ORDERS"


class Said(NamedTuple):
    """The answer of a command."""

    returncode: int
    stdout: str
    stderr: str


class Operator:
    """The command line in this process, next to a sink in another process."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def run(self, *arguments: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
            patched.setattr(sys, "argv", ["spark-sink", *arguments, "-c", str(self.sink.config)])
            patched.setenv("BOOTSTRAP", self.sink.bootstrap)
            with pytest.raises(SystemExit) as ended:
                main()
        return Said(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return found | {"tables": {table["table"]: table for table in found["tables"]}}

    def settings(self, **sections: dict[str, object]) -> None:
        loaded = yaml.safe_load(self.sink.config.read_text())
        for name, values in sections.items():
            loaded.setdefault(name, {}).update(values)
        self.sink.config.write_text(yaml.safe_dump(loaded))


ORDERS = schema_of({"id": "int64", "name": "string"})
FOREIGN = [None, b"", b"\x00\x00\x00\x00\x07other", b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08", b'{"v":1}']


@pytest.mark.integration
@pytest.mark.faults
@pytest.mark.parametrize("format", Format)
def test_an_operators_day(broker: Broker, tmp_path: Path, free_port: int, format: Format) -> None:
    """C14, C16, and a sink that is killed, stopped, loses its checkpoint and is misconfigured. All use one sink,
    because starting it is expensive.
    """
    sink = Sink(broker, tmp_path, f"operator-{format}")
    sink.settings["tables"]["formats"] = dict.fromkeys(("shop_sales.orders", ITEMS, "shop_sales.shouted"), str(format))
    sink.write_config()
    operator = Operator(sink)
    _bytes_of_others(operator)
    _batch_again(sink)
    with receiver() as receiving:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        operator.settings(metrics={"otlp": {"endpoint": receiving.endpoint, "headers": headers, "interval": 1}})
        _checkpoint_deleted(operator, free_port)
        assert receiving.newest("cdc_sink_batches_total").as_double >= 1
        assert "cdc-spark-sink" == receiving.reports[-1].identity["service.name"]
    _another_mode(sink)


def _bytes_of_others(operator: Operator) -> None:
    """The events of the topic are in the table. Foreign bytes, bad keys and two parked tables do not stop the sink."""
    sink = operator.sink
    items = schema_of({"id": "int64"}, table="items")
    producer = Producer({"bootstrap.servers": sink.bootstrap})
    for value in FOREIGN:
        producer.produce(sink.topic, value, partition=1)
    producer.produce(sink.topic, record(change("c", {"id": 7}, {"name": "x"}, pos=1))[:-30], partition=1)
    assert 0 == producer.flush(PATIENCE_SECONDS)
    bad = [
        change("c", {"id": None}, {"name": "no key"}, pos=50, schema=ORDERS),
        change("c", {"id": 2**63}, {"name": "too large"}, pos=51, schema=ORDERS),
    ]
    two_scopes = [
        change("c", {"id": 1}, {}, pos=60, schema=items, table="items"),
        change("c", {"id": 2}, {}, pos=1, schema=items, table="items", scope=OTHER_SCOPE),
        change("t", None, pos=61, table="items"),
        change("c", {"id": 3}, {}, pos=62, schema=items, table="items"),
    ]
    some = [change("c", {"id": n}, {"name": f"row {n}"}, pos=n, schema=ORDERS) for n in range(20)]
    shouted = schema_of({"id": "int64", "name": "string"}, table="ORDERS")
    clash = change("c", {"id": 1}, {"name": "shouted"}, pos=80, schema=shouted, table="ORDERS")
    sink.send([ORDERS, items, shouted], [*some, *bad, *two_scopes, clash])
    assert "no sink has run on this warehouse" in operator.run("resume", ITEMS).stderr
    assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    assert [(n, f"row {n}") for n in range(20)] == sink.rows()
    created = [line["table"] for line in sink.log() if line["event"] == "table created"]
    assert [ITEMS, "shop_sales.orders"] == sorted(created)
    found = operator.status()
    assert {"UNDECODABLE": len(FOREIGN) + 1} == found["no_table"]
    assert {"KEY_INVALID": 1, "KEY_UNKNOWN": 1} == found["tables"]["shop_sales.orders"]["quarantined"]
    assert ("TRUNCATE_SCOPES", 2) == tuple(found["tables"][ITEMS][name] for name in ("parked", "waiting"))
    assert ("TABLE_CLASH", 1) == tuple(found["tables"][SHOUTED][name] for name in ("parked", "waiting"))
    listed = operator.run("quarantine", "ls", "--reason", "KEY_UNKNOWN", "--table", "shop_sales.orders").stdout
    assert ["KEY_UNKNOWN", "shop_sales.orders", "0@20", "shop/raw/0/50/0"] == listed.split("\t")[:4]
    assert (
        "unknown reason 'KEY_UNKNOW' (did you mean KEY_UNKNOWN?)"
        in operator.run("quarantine", "ls", "--reason", "KEY_UNKNOW").stderr
    )


def _batch_again(sink: Sink) -> None:
    """A start that replays a batch skips it, survives Spark's fault and continues. If all processes of the service get
    SIGTERM, as from systemd, the running batch completes and the exit code is 0.
    """
    # The state after a crash between a table's last commit and the acknowledgement of the batch.
    commits = sink.folder / "checkpoint" / "commits"
    (commits / "0").unlink()
    (commits / ".0.crc").unlink(missing_ok=True)
    sink.send([], [change("u", {"id": 3}, {"name": "patched"}, pos=90, full=False, schema=ORDERS)])
    service = sink.start()
    try:
        wait(lambda: 1 in {line.get("batch") for line in sink.log() if line["event"] == "batch applied"}, service)
        assert (3, "patched") in sink.rows()
        wider = schema_of({"id": "int64", "name": "string", "more": "string"})
        sink.send([wider], [change("c", {"id": 20}, {"name": "row 20", "more": "x"}, pos=91, schema=wider)])
        wait(lambda: "columns added" in {line["event"] for line in sink.log()}, service)  # in the middle of a batch
        for pid in family(service.pid):
            os.kill(pid, signal.SIGTERM)
        assert 0 == service.wait(PATIENCE_SECONDS), sink.text()[-3000:]
    finally:
        service.kill()
    assert (21, (20, "row 20")) == (len(sink.rows()), sink.rows()[-1])
    assert "Traceback" not in sink.text()
    assert "stopped" == sink.log()[-1]["event"]
    batches = {line["batch"]: line for line in sink.log() if line["event"] == "batch applied"}
    # A broker that does not answer within two seconds leaves the lag unknown.
    unknown = [line["batch"] for line in sink.log() if "cannot read where the topic" in line.get("reason", "")]
    assert {0: 1, 1: 0, 2: 0} | dict.fromkeys(unknown) == {batch: line["lag"] for batch, line in batches.items()}
    # The commit of one table. This batch parked the other two.
    assert (3, 0) == (batches[0]["commits_skipped"], batches[0]["commits"])
    assert 1 == sum(line["event"] == "query restarted" for line in sink.log())


def _checkpoint_deleted(operator: Operator, port: int) -> None:
    """The checkpoint is deleted while a table is parked. Reading resumes at the end of the manifest without loss or
    duplicates. Commands are executed at the next start and while the topic is idle. A table that another pipeline
    created in another mode is parked at its first event.
    """
    sink = operator.sink
    assert 0 == operator.run("resume", ITEMS).returncode
    assert 0 == operator.run("resume", SHOUTED).returncode
    rename = {SHOUTED: "shop_sales.shouted"}
    tables = {"truncate": "all_scopes", "rename": rename, "modes": {RETURNS: "history"}}
    operator.settings(tables=tables, metrics={"port": port})
    shape = TableShape(TableId("shop", "sales", None, "returns"), (TableColumn("id", "bigint"),), ("id",))
    local_ddl(sink.folder / "warehouse").create(RETURNS, shape)
    shutil.rmtree(sink.folder / "checkpoint")
    sink.send([], [change("u", {"id": 3}, {"name": "patched again"}, pos=92, full=False, schema=ORDERS)])
    service = sink.start()
    try:
        wait(lambda: "batch applied" in {line["event"] for line in sink.log()}, service)
        assert (3, "patched again") in sink.rows()
        log = {line["event"]: line for line in sink.log()}
        assert {"0": 29, "1": 6} == log["checkpoint is empty, resuming at the end of the manifest"]["offsets"]
        assert 1 == log["batch applied"]["events"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as scraped:
            assert 'cdc_sink_commits_total{table="shop_sales.orders"} 1.0' in scraped.read().decode().splitlines()
        asked = CliRunner().invoke(cli, ["health", f"http://127.0.0.1:{port}"])  # as `helm test` does
        assert asked.output.startswith("alive and ready; batches since startup: "), asked.output
        assert [3] == [row["id"] for row in sink.present(ITEMS)]
        told = [operator.run(command, ITEMS, "--wait", "240") for command in ("park", "resume", "resume")]
        assert ["parked\n", "0 events replayed\n", "it is not parked\n"] == [ended.stdout for ended in told]
        failed = operator.run("park", "shop_sales.item", "--wait", "240")
        assert (2, "(did you mean shop_sales.items?)" in failed.stderr) == (failed.returncode, True)
        assert [(1, "shouted")] == sink.rows("shop_sales.shouted")
        returns = schema_of({"id": "int64"}, table="returns")
        sink.send([returns], [change("c", {"id": 1}, {}, pos=93, schema=returns, table="returns")])
        wait(lambda: RETURNS in {line["table"] for line in sink.log() if line["event"] == "table parked"}, service)
    finally:
        service.kill()
        service.wait()
    assert f"the table {RETURNS} was created with mode mirror, but tables.modes requests history" in sink.text()
    found = operator.status()
    parked = {name: table["parked"] for name, table in found["tables"].items() if table["parked"] is not None}
    assert {RETURNS: "TABLE_REFUSED"} == parked
    assert ({"UNDECODABLE": len(FOREIGN) + 1}, []) == (found["no_table"], found["open_commands"])
    assert 21 == len(sink.rows())


def _another_mode(sink: Sink) -> None:
    """A configured mode that a table cannot have is detected from the manifest, before Spark starts."""
    settings = yaml.safe_load(sink.config.read_text())
    settings["tables"] |= {"modes": {"shop_sales.orders": "history"}}
    sink.config.write_text(yaml.safe_dump(settings))
    _told(sink, sink.start(), "shop_sales.orders")
    assert [] == sink.log()


def _told(sink: Sink, process: subprocess.Popen[str], table: str) -> None:
    """Check for exit code 2, one message and no stack trace."""
    assert 2 == process.wait(PATIENCE_SECONDS), sink.text()[-3000:]
    lines = sink.text().splitlines()
    assert not [line for line in lines if "Exception" in line or line.startswith(("\tat ", "Traceback"))]
    assert f"the table {table} was created with mode mirror, but tables.modes requests history" in sink.text()
