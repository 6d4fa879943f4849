"""The service as a process: exit codes, what it says, and that it can be stopped while it starts."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dev.broker import Broker
from tests.stopped import MOMENTS, stopped_while_it_imports

PROGRAM = Path(sys.executable).with_name("translator")
PATIENCE_SECONDS = 180  # a start takes two on a quiet machine


def start(directory: Path, bootstrap: str, **more: object) -> subprocess.Popen[str]:
    """The service with one Canal source; `more` is merged into its settings."""
    settings = {
        "kafka": {"bootstrap_servers": bootstrap},
        "output": {"topic": "process-test"},
        "topics": {"create": False},
        "sources": [{"name": "s", "dialect": "canal", "topics": ["process-raw"]}],
        **more,
    }
    config = directory / "translator.yaml"
    config.write_text(yaml.safe_dump(settings))
    return subprocess.Popen([PROGRAM, "run", "-c", config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_without_a_broker_it_says_so_and_ends_with_1(tmp_path: Path, free_port: int) -> None:
    """A broker that does not answer within `timing.broker_wait` is a failure, not a configuration error."""
    process = start(tmp_path, f"127.0.0.1:{free_port}", timing={"broker_wait": 1})
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert 1 == process.returncode
    assert "no broker answered within 1 s" in output.splitlines()[-1]


def test_missing_topics_end_it_with_2(tmp_path: Path, broker: Broker) -> None:
    """Topics that may not be created are named, and the exit code says: configuration."""
    process = start(tmp_path, broker.bootstrap)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert 2 == process.returncode
    assert "missing topics: process-test" in output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sources": [{"name": "s", "dialect": "canla", "topics": ["t"]}]}, "did you mean canal?"),
        ({"sources": [{"name": "s", "dialect": "canal", "topics": ["t"], "options": {"profil": "oss"}}]}, "profile"),
        ({"webb": {"port": 1}}, "did you mean web?"),
    ],
)
def test_a_wrong_name_in_the_configuration_ends_it_with_2(tmp_path: Path, more: dict[str, object], said: str) -> None:
    """A misspelt name is found before anything is connected to, with the nearest known one."""
    process = start(tmp_path, "127.0.0.1:1", **more)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert 2 == process.returncode
    assert said in output


def test_it_can_be_stopped_while_it_waits_for_a_broker(tmp_path: Path, free_port: int) -> None:
    """SIGTERM during the start ends it in order, also as process 1 of a container."""
    process = start(tmp_path, f"127.0.0.1:{free_port}", timing={"broker_wait": 300}, web={"port": free_port})
    assert process.stdout is not None
    try:
        assert any("waiting for a broker" in line for line in process.stdout)
        with pytest.raises(ConnectionRefusedError):  # not ready before the catalog is loaded: nobody answers
            socket.create_connection(("127.0.0.1", free_port), 5)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_can_be_stopped_while_it_imports(tmp_path: Path, free_port: int, moment: str) -> None:
    """SIGTERM ends it without a word, also where Python would swallow an exception or make another of it."""
    source = {"name": "s", "dialect": "canal", "topics": ["raw"]}
    settings = {"kafka": {"bootstrap_servers": f"127.0.0.1:{free_port}"}, "sources": [source]}
    ran = stopped_while_it_imports(tmp_path, "translator", settings, "translator.runtime.app", moment)
    assert (0, "", "") == (ran.returncode, ran.stdout, ran.stderr)
