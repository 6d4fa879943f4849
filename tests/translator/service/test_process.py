"""The service as a process: exit codes, output, and stopping during startup."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from dev.servers.broker import Broker, hold_port
from dev.servers.stack import wait_until
from tests.otlp_receiver import TOKEN, receiver
from tests.stopped import MOMENTS, stopped_while_it_imports
from tests.translator.service._pipeline import CANAL_ROW
from translator.kafka.admin import GroupMember, TopicAdmin

PROGRAM = Path(sys.executable).with_name("translator")
PATIENCE_SECONDS = 180  # a start takes two on an idle machine


RESERVED = hold_port()
"""The port for processes that end before they serve anything."""


def start(directory: Path, bootstrap: str, **more: object) -> subprocess.Popen[str]:
    """Start the service with one Canal source. `more` is merged into its settings."""
    settings = {
        "web": {"port": RESERVED.getsockname()[1]},
        "kafka": {"bootstrap_servers": bootstrap},
        "output": {"topic": "process-test"},
        "topics": {"create": False},
        "sources": [{"name": "s", "dialect": "canal", "topics": ["process-raw"], "options": {"profile": "oss"}}],
        **more,
    }
    config = directory / "translator.yaml"
    config.write_text(yaml.safe_dump(settings))
    return subprocess.Popen([PROGRAM, "run", "-c", config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_without_a_broker_it_says_so_and_ends_with_1(tmp_path: Path, free_port: int) -> None:
    """No response within `timing.broker_wait` is a failure and not a configuration error."""
    process = start(tmp_path, f"127.0.0.1:{free_port}", timing={"broker_wait": 1})
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    end = last_line(output)
    assert (1, 1, "stopping", "critical") == (process.returncode, end["exit_code"], end["event"], end["level"])
    assert "no broker available within 1 s" in end["error"]


def test_missing_topics_end_it_with_2(tmp_path: Path, broker: Broker) -> None:
    """Missing topics that must not be created are named, and the exit code is that of a configuration error."""
    process = start(tmp_path, broker.bootstrap)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    end = last_line(output)
    assert (2, 2, "stopping") == (process.returncode, end["exit_code"], end["event"])
    assert "missing topics: process-test" in end["error"]


def test_a_raw_topic_that_does_not_exist_ends_it_with_2(tmp_path: Path, broker: Broker) -> None:
    """The last line names the topic and the most similar one that exists."""
    name = f"process-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(f"{name}.canal", 1, 1)])[f"{name}.canal"].result(30)
    source = {"name": "s", "dialect": "canal", "topics": [f"{name}.cannal"], "options": {"profile": "oss"}}
    with hold_port() as reserved:
        web = {"port": reserved.getsockname()[1]}
        more = {"output": {"topic": name}, "topics": {"create": True}, "web": web}
        process = start(tmp_path, broker.bootstrap, sources=[source], **more)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    end = last_line(output)
    missing = f"topic {name}.cannal does not exist or is not visible to this user; did you mean {name}.canal?"
    assert (2, missing) == (process.returncode, end["error"])


def test_a_port_in_use_ends_it_with_2(tmp_path: Path, free_port: int) -> None:
    """The last line names the setting, before a broker is contacted. It has no traceback."""
    with hold_port() as other:
        other.listen()
        port = other.getsockname()[1]
        process = start(tmp_path, f"127.0.0.1:{free_port}", web={"host": "127.0.0.1", "port": port})
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    end = last_line(output)
    said = f"web.port: {port} is in use at 127.0.0.1: choose another port, or stop the process that uses it"
    assert (2, 2, said) == (process.returncode, end["exit_code"], end["error"])
    assert "Traceback" not in output


def last_line(output: str) -> dict[str, Any]:
    """Return the fields of the last line. Every line is JSON."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    return lines[-1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sources": [{"name": "s", "dialect": "canla", "topics": ["t"]}]}, "did you mean canal?"),
        ({"sources": [{"name": "s", "dialect": "canal", "topics": ["t"], "options": {"profil": "oss"}}]}, "profile"),
        ({"webb": {"port": 1}}, "did you mean web?"),
    ],
)
def test_a_wrong_name_in_the_configuration_ends_it_with_2(tmp_path: Path, more: dict[str, object], said: str) -> None:
    """A misspelled name is found before any connection, with the closest known one."""
    process = start(tmp_path, "127.0.0.1:1", **more)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert 2 == process.returncode
    assert said in output


def test_it_can_be_stopped_while_it_waits_for_a_broker(tmp_path: Path, free_port: int) -> None:
    """SIGTERM during startup ends it cleanly, also as process 1 of a container."""
    process = start(tmp_path, f"127.0.0.1:{free_port}", timing={"broker_wait": 300}, web={"port": free_port})
    assert process.stdout is not None
    try:
        assert any("waiting for a broker" in line for line in process.stdout)
        with pytest.raises(ConnectionRefusedError):  # no answer until the catalog is loaded
            socket.create_connection(("127.0.0.1", free_port), 5)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Group:
    """Processes of one group that read a raw topic of one partition."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self._broker, self._directory = broker, directory
        self._name = f"process-{uuid.uuid4().hex[:8]}"
        self._processes: list[subprocess.Popen[str]] = []
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(f"{self._name}-raw", 1, 1)])[f"{self._name}-raw"].result(30)

    def start(self, port: int, lineage: object = None, folder: str = "", **metrics: object) -> subprocess.Popen[str]:
        directory = self._directory / (folder or str(port))
        directory.mkdir()
        process = start(
            directory,
            self._broker.bootstrap,
            group=self._name,
            output={"topic": self._name},
            topics={"create": True, "partitions": 1},
            web={"port": port},
            metrics=metrics,
            lineage=lineage,
            sources=[{"name": "s", "dialect": "canal", "topics": [f"{self._name}-raw"], "options": {"profile": "oss"}}],
        )
        self._processes.append(process)
        return process

    @property
    def name(self) -> str:
        return self._name

    def members(self) -> list[GroupMember]:
        """Return the group's members, as the brokers know them."""
        return TopicAdmin({"bootstrap.servers": self._broker.bootstrap}).members(self._name) or []

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def group(broker: Broker, tmp_path: Path) -> Iterator[Group]:
    made = Group(broker, tmp_path)
    yield made
    made.close()


def asked(port: int, path: str) -> tuple[int, str]:
    """Return status and text of a page, or status 0 if there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def gauge(port: int, name: str) -> float | None:
    """Return a gauge without labels from /metrics, or None if there is no answer."""
    lines = asked(port, "/metrics")[1].splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)


def is_ready(port: int) -> bool:
    return asked(port, "/readyz")[0] == 200


def test_metrics_alone_tell_what_is_owned(group: Group, free_port: int) -> None:
    """The gauges are right even if nobody requests /readyz, and so are reported ones."""
    with receiver() as receiving:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        group.start(free_port, otlp={"endpoint": receiving.endpoint, "headers": headers, "interval": 1})
        wait_until(
            "a partition is assigned", PATIENCE_SECONDS, lambda: gauge(free_port, "cdc_partitions_assigned") == 1
        )
        assert 1 == gauge(free_port, "cdc_topics_subscribed")
        wait_until(
            "the same was reported",
            PATIENCE_SECONDS,
            lambda: (point := receiving.newest("cdc_partitions_assigned")) and point.as_double == 1,
        )
        assert "cdc-translator" == receiving.reports[-1].identity["service.name"]


def test_latency_by_stage(group: Group, broker: Broker, free_port: int) -> None:
    """A message passes through every stage. The first stage includes the time since the record's timestamp."""
    group.start(free_port)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(f"{group.name}-raw", json.dumps(CANAL_ROW), timestamp=int((time.time() - 3_600) * 1000))
    assert 0 == producer.flush(PATIENCE_SECONDS)

    def stages(part: str) -> dict[str, float]:
        families = text_string_to_metric_families(asked(free_port, "/metrics")[1])
        found = [sample for family in families for sample in family.samples]
        return {one.labels["stage"]: one.value for one in found if one.name == f"cdc_latency_seconds_{part}"}

    expected = dict.fromkeys(("fetch", "queue", "translate", "deliver"), 1.0)
    wait_until("the batch is acknowledged", PATIENCE_SECONDS, lambda: stages("count") == expected)
    took = stages("sum")
    assert took.pop("fetch") >= 3_600
    assert all(0 < seconds < PATIENCE_SECONDS for seconds in took.values()), took


def test_lineage(group: Group, broker: Broker, free_port: int, tmp_path: Path) -> None:
    """The raw topic's job starts, gets a table with its columns, and is aborted by a signal. After a restart, the
    columns come from the schemas topic.
    """
    path = tmp_path / "lineage.jsonl"

    def events() -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def columns(event: dict[str, Any]) -> list[str]:
        tables = event["outputs"][0]["facets"].get("schema", {"fields": []})["fields"]
        return [f"{table['name']}.{column['name']}" for table in tables for column in table.get("fields", [])]

    topic = f"{group.name}-raw"
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for run in (1, 2):
        process = group.start(free_port, {"to": f"file://{path}"}, folder=f"run {run}")
        producer.produce(topic, json.dumps(CANAL_ROW))
        assert 0 == producer.flush(PATIENCE_SECONDS)
        wait_until("the columns are reported", PATIENCE_SECONDS, lambda: events() and columns(events()[-1]))
        process.terminate()
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert 0 == process.returncode, output
        assert ["shop.t.id", "shop.t.name"] == columns(events()[-1])
        kinds = [one["eventType"] for one in events()]
        assert ("START", "ABORT") == (kinds[0], kinds[-1])
        assert {f"{group.name}.{topic}"} == {one["job"]["name"] for one in events()}
        assert 1 == len({one["run"]["runId"] for one in events()})
        path.unlink()


def test_ready_when_the_group_has_assigned_something_or_nothing(group: Group, free_port: int) -> None:
    """It is ready after the first assignment, even without a partition if there are more processes."""
    with hold_port() as reserved:
        ports = free_port, reserved.getsockname()[1]
        first = group.start(ports[0])
        wait_until("the first is ready", PATIENCE_SECONDS, lambda: is_ready(ports[0]))
        assert 1 == gauge(ports[0], "cdc_partitions_assigned"), "the only process owns the only partition"
        group.start(ports[1])

        def owned() -> list[float | None]:
            return sorted((gauge(port, "cdc_partitions_assigned") for port in ports), key=lambda value: value or 0)

        wait_until("both are ready", PATIENCE_SECONDS, lambda: all(map(is_ready, ports)) and owned() == [0, 1])
        members = group.members()
        assert [0, 1] == sorted(len(member.partitions) for member in members)
        first.terminate()
        output, _ = first.communicate(timeout=PATIENCE_SECONDS)
        end = last_line(output)
        assert ("stopped", 0, 0) == (end["event"], end["exit_code"], end["read"])
        assert "[^" not in output
        wait_until("the other owns it", PATIENCE_SECONDS, lambda: gauge(ports[1], "cdc_partitions_assigned") == 1)
        assert is_ready(ports[1])


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_can_be_stopped_while_it_imports(tmp_path: Path, free_port: int, moment: str) -> None:
    """SIGTERM ends it with one line, even where Python would swallow or replace an exception."""
    source = {"name": "s", "dialect": "canal", "topics": ["raw"], "options": {"profile": "oss"}}
    settings = {"kafka": {"bootstrap_servers": f"127.0.0.1:{free_port}"}, "sources": [source]}
    ran = stopped_while_it_imports(tmp_path, "translator", settings, "translator.service.app", moment)
    assert (0, "") == (ran.returncode, ran.stdout)
    end = json.loads(ran.stderr)
    assert ("stopped", 0, "SIGTERM") == (end["event"], end["exit_code"], end["signal"])
