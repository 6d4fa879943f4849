"""Lineage events arrive as the specification requires, and a receiver that fails does not matter to the process."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from pydantic import ValidationError

from cdc_core.kafka_settings import Kafka
from cdc_core.lineage import (
    ColumnSource,
    Dataset,
    Field,
    JobDatasets,
    Lineage,
    LineageReports,
    kafka_namespace,
    storage_dataset,
)
from cdc_core.lineage import reports as reports_module
from cdc_core.lineage.events import RunOfJob, event
from dev.environments import NotInstalledError, environment
from dev.servers.broker import Broker, hold_port
from dev.servers.stack import wait_until

CLIENT = Path(__file__).with_name("lineage_client.py")
PATIENCE_SECONDS = 180
TOKEN = "toy-token"
NAMESPACE = "kafka://b:9092"

FIELDS = (Field("shop.t", "struct", (Field("id", "int64"), Field("n", "string"))),)
SOURCES = {
    "shop.t.id": (ColumnSource(NAMESPACE, "raw", "shop.t.id"), ColumnSource(NAMESPACE, "raw", "shop.u.id")),
    "shop.t.n": (ColumnSource(NAMESPACE, "raw", "shop.t.n", "hash"),),
}
TABLE = Dataset(*storage_dataset("s3a://lake/shop/t"), FIELDS, SOURCES, ("https://catalog", "shop.t"))
JOB = JobDatasets((Dataset(NAMESPACE, "raw"),), (Dataset(NAMESPACE, "cdc.canonical", FIELDS, SOURCES), TABLE))


class Reporting:
    """Reports to a receiver, and what the process logged and counted."""

    def __init__(self, to: str, broker: str = "nobody:1", **settings: Any) -> None:
        self.logged: list[tuple[str, dict[str, object]]] = []
        self.failed = 0
        given = Lineage.model_validate({"to": to, **settings})
        self.reports = LineageReports(given, Kafka(bootstrap_servers=broker), "program", self._warn, self._count)

    def _warn(self, text: str, /, **fields: object) -> None:
        self.logged.append((text, fields))

    def _count(self) -> None:
        self.failed += 1


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports_module, "_ROUND_SECONDS", 0.05)


class Server(ThreadingHTTPServer):
    """Keeps the events that it accepts, with their headers. It answers with `code`, after `seconds`."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.code, self.seconds, self.to = 201, threading.Event(), ""
        self.seconds.set()
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(dict(self.headers))
        self.server.seconds.wait(PATIENCE_SECONDS)
        if self.server.code == 201:
            self.server.events.append(body)
        self.send_response(self.server.code)
        self.send_header("Location", self.server.to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """A redirected client arrives in this way."""
        self.server.headers.append(dict(self.headers))
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a failing test reports what is missing."""


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.seconds.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/api/v1/lineage"


def test_to_a_file(tmp_path: Path) -> None:
    """A run has one start, an event for a change, and one end. Each has everything that is known then."""
    path = tmp_path / "lineage events.jsonl"
    reporting, found = Reporting(f"file://{tmp_path}/lineage%20events.jsonl", namespace="shop"), [JOB]
    with reporting.reports:
        reporting.reports.report("g.raw", lambda: found[0])
        wait_until("the start is written", PATIENCE_SECONDS, path.exists)
        found[0] = JobDatasets(JOB.inputs, (Dataset(NAMESPACE, "cdc.canonical", (Field("shop.u", "struct"),)),))
        reporting.reports.report("g.raw", lambda: found[0])
        wait_until("the change is written", PATIENCE_SECONDS, lambda: path.read_text().count("\n") == 2)
        reporting.reports.end = "COMPLETE"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert ["START", "RUNNING", "COMPLETE"] == [one["eventType"] for one in events]
    assert 1 == len({one["run"]["runId"] for one in events})
    assert {("shop", "g.raw")} == {(one["job"]["namespace"], one["job"]["name"]) for one in events}
    tables = [one["outputs"][0]["facets"]["schema"]["fields"][0]["name"] for one in events]
    assert ["shop.t", "shop.u", "shop.u"] == tables
    assert ([], 0) == (reporting.logged, reporting.failed)


def test_to_a_server() -> None:
    """Headers are sent. Changes within a round are one event. A run has failed unless the program says otherwise."""
    with serving() as server:
        reporting = Reporting(_url(server), headers={"Authorization": f"Bearer {TOKEN}"})
        with reporting.reports:
            for _ in range(100):
                reporting.reports.report("g.raw", lambda: JOB)
            wait_until("the start has arrived", PATIENCE_SECONDS, lambda: server.events)
        assert ["START", "FAIL"] == [one["eventType"] for one in server.events]
    assert {(f"Bearer {TOKEN}", "application/json")} == {
        (one["Authorization"], one["Content-Type"]) for one in server.headers
    }


def test_to_a_topic(broker: Broker) -> None:
    """An event can be larger than 1 MB, which is the default limit of clients and brokers."""
    columns = {f"shop.t.{number:03}{'n' * 100}": SOURCES["shop.t.n"] for number in range(5_000)}
    large = JobDatasets(JOB.inputs, (Dataset(NAMESPACE, "cdc.canonical", FIELDS, columns),))
    topic = "lineage.events"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    reporting = Reporting(f"kafka:{topic}", broker.bootstrap)
    with reporting.reports:
        reporting.reports.report("g.raw", lambda: large)
        reporting.reports.end = "ABORT"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "any", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = [json.loads(record.value() or b"") for record in consumer.consume(2, PATIENCE_SECONDS)]
    consumer.close()
    assert ["START", "ABORT"] == [one["eventType"] for one in found]


def test_a_receiver_that_is_away() -> None:
    """It is logged once, each failure is counted. No secret is logged."""
    with hold_port() as held:
        reporting = Reporting(f"http://127.0.0.1:{held.getsockname()[1]}/v1", headers={"X-Key": TOKEN})
        with reporting.reports:
            for name in ("a", "b"):
                reporting.reports.report(name, lambda: JOB)
            wait_until("it failed several times", PATIENCE_SECONDS, lambda: reporting.failed > 3)
    (text, fields), *others = reporting.logged
    assert ("lineage receiver failed", []) == (text, others)
    assert TOKEN not in str(fields)


def test_a_server_that_refuses() -> None:
    """The code is logged, and not the server's text. A redirect is refused, so that no token goes elsewhere."""
    with serving() as server, serving() as other:
        server.code, server.to = 302, _url(other)
        reporting = Reporting(_url(server), headers={"Authorization": TOKEN})
        with reporting.reports:
            reporting.reports.report("a", lambda: JOB)
            wait_until("it failed", PATIENCE_SECONDS, lambda: reporting.failed)
            server.code = 201
            wait_until("the start has arrived", PATIENCE_SECONDS, lambda: server.events)
        assert [] == other.headers
    failed, restored = reporting.logged
    assert ("lineage receiver failed", "the server answers HTTP 302") == (failed[0], failed[1]["reason"])
    assert "lineage receiver restored" == restored[0]
    assert ["START", "FAIL"] == [one["eventType"] for one in server.events]


def test_a_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process does not wait for it, except for a limited time at its end."""
    monkeypatch.setattr(reports_module, "_LAST_SECONDS", 0.2)
    with serving() as server:
        server.seconds.clear()
        reporting = Reporting(_url(server))
        with reporting.reports:
            reporting.reports.report("a", lambda: JOB)
            wait_until("it was asked", PATIENCE_SECONDS, lambda: server.headers)
            reporting.reports.report("b", lambda: JOB)
        assert reporting.reports.is_alive()
        assert [] == server.events


def test_a_description_that_fails() -> None:
    """A defect in a description is a failed event."""
    with serving() as server:
        reporting = Reporting(_url(server))
        with reporting.reports:
            reporting.reports.report("a", lambda: JobDatasets((), (JOB.outputs[9],)))
            wait_until("it failed", PATIENCE_SECONDS, lambda: reporting.failed)
    assert [("lineage receiver failed", "IndexError")] == [(text, one["reason"]) for text, one in reporting.logged]


def test_jobs_within_a_job() -> None:
    """A job names the run of the job that contains it. A job with nothing to report sends no event, and a job that
    cannot be described ends as it was reported before.
    """
    with serving() as server:
        reporting, found = Reporting(_url(server)), [JOB]
        with reporting.reports:
            reporting.reports.report("g", lambda: JobDatasets((), ()))
            reporting.reports.report("g.none", lambda: None, "g")
            reporting.reports.report("g.one", lambda: found[0], "g")
            wait_until("both have begun", PATIENCE_SECONDS, lambda: len(server.events) == 2)
            found.clear()
            reporting.reports.report("g.one", lambda: found[0], "g")
            wait_until("it failed", PATIENCE_SECONDS, lambda: reporting.failed)
            reporting.reports.report("g.two", lambda: JOB, "g")
    outer = server.events[0]["run"]["runId"]
    parents = {one["job"]["name"]: one["run"]["facets"].get("parent") for one in server.events}
    assert parents.pop("g") is None
    assert {"g.one", "g.two"} == parents.keys()
    assert {(outer, "g")} == {(one["run"]["runId"], one["job"]["name"]) for one in parents.values()}
    assert {"g", "g.one", "g.two"} == {one["job"]["name"] for one in server.events if one["eventType"] == "FAIL"}


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/lake/shop/t/", "file", "/lake/shop/t"),
        ("file:/lake/a?b/t", "file", "/lake/a?b/t"),
        ("file:///lake/t", "file", "/lake/t"),
        ("s3a://lake/shop/t", "s3://lake", "shop/t"),
        ("s3://lake/shop/t/", "s3://lake", "shop/t"),
        ("gs://lake/shop/t", "gs://lake", "shop/t"),
        ("hdfs://node:8020/lake/t", "hdfs://node:8020", "/lake/t"),
        ("abfss://c@a.dfs.core.windows.net/lake/t", "abfss://c@a.dfs.core.windows.net", "/lake/t"),
    ],
)
def test_names_of_tables(location: str, namespace: str, name: str) -> None:
    """The names are those that OpenLineage's client for Java makes from a location."""
    assert (namespace, name) == storage_dataset(location)


def test_the_specification() -> None:
    """OpenLineage's own client, whose classes are generated from the specification, reads and writes the same event."""
    try:
        python = environment("openlineage", ["openlineage-python==1.54.0"])
    except NotInstalledError as error:
        pytest.skip(f"{error}; the agreement with OpenLineage's client is NOT SHOWN")
    run = RunOfJob("11111111-2222-4333-8444-555555555555", "cdc", "g.raw")
    parent = RunOfJob("22222222-2222-4333-8444-555555555555", "cdc", "g")
    kinds = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL")
    ours = [event(kind, datetime.now(UTC), run, "program", JOB) for kind in kinds]
    ours.append(event("START", datetime.now(UTC), run, "program", JOB, parent))
    ended = subprocess.run([python, CLIENT], input=b"\n".join(ours), capture_output=True, check=False)
    assert b"" == ended.stderr
    theirs = [_without_empty(json.loads(line)) for line in ended.stdout.splitlines()]
    assert [_without_empty(json.loads(one)) for one in ours] == theirs


def _without_empty(value: Any) -> Any:
    """Leave out the empty lists and objects that the client adds."""
    if isinstance(value, dict):
        return {name: kept for name, one in value.items() if (kept := _without_empty(one)) not in ({}, [])}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"to": "ftp://b/x"}, "must begin with http://"),
        ({"to": "file://relative"}, "whole path"),
        ({"to": "file:///folder/"}, "whole path"),
        ({"to": "kafka:"}, "the name of a topic"),
        ({"to": "kafka:a b"}, "the name of a topic"),
        ({"to": "https://u:hunter2@h/x"}, "use headers instead"),
        ({"to": "https://h/x?token=hunter2"}, "must not contain"),
        ({"to": "kafka:t", "headers": {"A": "hunter2"}}, "headers is set"),
        ({"to": "https://h/x", "headers": {"A b": "hunter2"}}, "header name"),
    ],
)
def test_settings_that_are_wrong(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        Lineage.model_validate(settings)
    messages = str([one["msg"] for one in wrong.value.errors(include_input=False)])
    assert told in messages
    assert "hunter2" not in messages


def test_namespaces() -> None:
    assert "kafka://a:1" == kafka_namespace(" a:1, b:2") == kafka_namespace("SASL_SSL://a:1,b:2")
