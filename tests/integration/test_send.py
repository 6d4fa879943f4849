"""`translator send` sends a message through the running service, as `helm test` does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.stack import Stack, is_ready, wait_until
from tests.translator.commands import _program

SECONDS = 240  # timeout for hanging tests

BEAT = {
    "type": "UPDATE",
    "database": "cdc",
    "table": "heartbeat",
    "pkNames": ["id"],
    "mysqlType": {"id": "int", "at": "bigint"},
    "data": [{"id": "1", "at": "2"}],
    "old": [{"at": "1"}],
    "es": 1589373515000,
    "ts": 1589373515477,
    "isDdl": False,
}
SOURCE = {
    "name": "shop",
    "dialect": "canal",
    "topics": ["raw.shop"],
    "options": {"profile": "oss", "heartbeat_tables": ["cdc.heartbeat"]},
}


@pytest.fixture(scope="module")
def stack(module_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A service that reads one topic."""
    stack = Stack(module_broker.bootstrap, tmp_path_factory.mktemp("send"), [SOURCE])
    stack.create_raw_topics()
    stack.start("translator")
    try:
        wait_until("the service is ready", SECONDS, lambda: is_ready(stack.web_port), stack)
        yield stack
    finally:
        stack.close()


def test_a_heartbeat(stack: Stack) -> None:
    """The command finds the heartbeat's event, which represents no row."""
    sent = _send(stack, json.dumps(BEAT), "--json")
    assert 0 == sent.returncode, sent.stderr
    found = json.loads(sent.stdout)
    (event,) = found["events"]
    assert f"shop/raw.shop/{found['partition']}/{found['offset']}/0" == event
    (record,) = stack.records("cdc.canonical")
    assert event.encode() == dict(record.headers())["cdc-id"]
    assert b"watermark" == dict(record.headers())["cdc-kind"]


def test_a_dead_letter(stack: Stack) -> None:
    """The command finds the dead letter and reports a failure with its code."""
    sent = _send(stack, "no JSON at all")
    assert (1, "") == (sent.returncode, sent.stdout)
    assert "the message became a dead letter, " in sent.stderr
    assert "translator explain raw.shop" in sent.stderr


def test_nothing(stack: Stack) -> None:
    """If a message produces neither an event nor a dead letter, the command times out and reports its position."""
    sent = _send(stack, "null", "--timeout", "1")
    assert 1 == sent.returncode
    assert "no event or dead letter for raw.shop/" in sent.stderr
    assert "within 1 s" in sent.stderr


def test_a_foreign_topic(stack: Stack) -> None:
    """The command writes nothing to a topic that no source reads."""
    sent = _send(stack, json.dumps(BEAT), topic="cdc.canonical")
    assert 2 == sent.returncode
    assert "no source reads topic cdc.canonical; the raw topics of this configuration are raw.shop" in sent.stderr


def _send(stack: Stack, message: str, *options: str, topic: str = "raw.shop") -> subprocess.CompletedProcess[str]:
    file: Path = stack.directory / "message"
    file.write_text(message)
    return _program.run("send", "-c", str(stack.directory / "translator.yaml"), *options, topic, str(file))
