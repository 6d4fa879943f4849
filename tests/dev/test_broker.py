"""The broker starts, stops, survives kills and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import LOOPBACK, Broker, BrokerError, PortTakenError
from tests.dev.running import alive, command, taken_port

pytestmark = pytest.mark.integration

SECONDS = 120.0  # timeout for hanging tests


def test_answers(broker: Broker) -> None:
    """Clients reach it at its bootstrap address, and it is the only broker."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    nodes = admin.list_topics(timeout=10).brokers.values()
    assert [broker.bootstrap] == [f"{node.host}:{node.port}" for node in nodes]


def test_loopback_only(broker: Broker) -> None:
    """Other machines cannot connect."""
    settings = (broker.directory / "server.properties").read_text().splitlines()
    (listeners,) = (line.partition("=")[2].split(",") for line in settings if line.startswith("listeners="))
    assert [LOOPBACK, LOOPBACK] == [listener.split("://")[1].split(":")[0] for listener in listeners]


def test_topics_are_not_created_by_themselves(broker: Broker) -> None:
    """As in production, writing to a missing topic is an error."""
    failures = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 3000})
    producer.produce("never-created", b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(SECONDS)
    assert 1 == len(failures)
    assert failures[0] is not None


def test_killed_and_started_again(tmp_path: Path, free_port: int) -> None:
    """After a kill, it restarts at the same address with the same records.

    It uses a given directory and port, and keeps the directory.
    """
    with Broker(free_port, tmp_path / "kafka") as own:
        bootstrap, first_pid = own.bootstrap, own.pid
        assert f"{LOOPBACK}:{free_port}" == bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(SECONDS)
        _write(bootstrap, "kept", b"before the kill")

        own.kill()
        own.start()

        assert bootstrap == own.bootstrap
        assert first_pid != own.pid
        assert b"before the kill" == _read_one(bootstrap, "kept")
    assert (tmp_path / "kafka" / "data" / "meta.properties").is_file()


def test_start_twice(broker: Broker) -> None:
    """A second start is rejected, because nobody would own the first process."""
    with pytest.raises(BrokerError, match=f"is already running as process {broker.pid}; call stop"):
        broker.start()


def test_died_by_itself() -> None:
    """If the broker has ended on its own, stopping it raises an error and keeps its log."""
    running = Broker()
    running.start()
    os.kill(running.pid, signal.SIGKILL)
    assert -signal.SIGKILL == running.wait()
    with pytest.raises(BrokerError, match=r"exited unexpectedly with code -9; its log, .*broker\.log, ends:"):
        running.close()
    assert running.log.is_file()
    running.close()
    assert not running.directory.exists()


def test_broken_directory(tmp_path: Path) -> None:
    """The error of a failed start contains the end of the log."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=77\n")
    broken = Broker(directory=tmp_path)
    with pytest.raises(BrokerError, match=r"(?s)exited at startup with code 1; its log, .*77"):
        broken.start()
    with pytest.raises(BrokerError, match="is not running"):
        _ = broken.pid


def test_port_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error identifies a requested port that is in use."""
    monkeypatch.setattr("dev.servers.broker.PORT_PAUSE_SECONDS", 0.0)
    with taken_port() as port, pytest.raises(PortTakenError, match=f"port {port} of 127.0.0.1 is in use"):
        Broker(port, tmp_path).start()


def test_port_lost_between_asking_and_using(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process takes the free port meanwhile, the broker picks another and removes its folder at the end."""
    with taken_port() as lost:
        offered = [lost]
        really_free = sys.modules["dev.servers.broker"].free_port
        monkeypatch.setattr("dev.servers.broker.free_port", lambda: offered.pop() if offered else really_free())
        with Broker() as running:
            assert f"{LOOPBACK}:{lost}" != running.bootstrap
            directory = running.directory
            assert directory.is_dir()
    assert not directory.exists()


def test_no_two_listeners_with_one_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listeners get different ports, although the system can return the same free port twice."""
    offered = [7, 7, 8]
    monkeypatch.setattr("dev.servers.broker.free_port", lambda: offered.pop(0))
    settings = Broker(7, tmp_path)._settings(7)
    assert ["PLAINTEXT://127.0.0.1:7", "CONTROLLER://127.0.0.1:8"] == settings["listeners"].split(",")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_command_ends_in_order(how: signal.Signals) -> None:
    """`python -m dev.servers.broker` prints its address. Ctrl-C or SIGTERM leaves no process and no directory."""
    with command("broker") as running:
        bootstrap, directory, java = _told_by(running)
        assert bootstrap.startswith(f"{LOOPBACK}:")
        running.send_signal(how)
        assert 0 == running.wait(SECONDS)  # the broker can take STOP_SECONDS of it
    assert not alive(java)
    assert not directory.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
def test_parent_killed_hard() -> None:
    """If its Python process is killed, the broker ends too."""
    with command("broker") as running:
        _, directory, java = _told_by(running)
        running.kill()
        running.wait(SECONDS)
    _wait_until(lambda: not alive(java))
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()


def _told_by(running: subprocess.Popen[str]) -> tuple[str, Path, int]:
    """Return the address, directory and process id of the broker that the command started."""
    assert running.stdout is not None
    assert running.stderr is not None
    bootstrap = running.stdout.readline().strip()
    directory = Path(running.stderr.readline().split(" in ")[1].split(";")[0])
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    found = children.read_text() if children.exists() else subprocess.getoutput(f"pgrep -P {running.pid}")
    return bootstrap, directory, int(found.split()[0])


def _wait_until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds:.0f} s"
        time.sleep(0.05)


def _write(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce(topic, value)
    assert 0 == producer.flush(SECONDS)


def _read_one(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "one", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()
