"""The probes of the sink."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from spark_sink import probes
from spark_sink.errors import ConfigError
from spark_sink.probes import CONNECTIONS, PATIENCE_SECONDS, Health, serve


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_alive_while_somebody_looks_after_the_query() -> None:
    """The sink counts as hanging if nobody checked the query for a long time, unless a command or maintenance runs."""
    clock = _Clock()
    health = Health(clock)
    clock.now = PATIENCE_SECONDS
    assert health.hangs() is None
    clock.now += 1
    assert f"the query has not been checked for {PATIENCE_SECONDS + 1:.0f} s" == health.hangs()
    health.beat()
    assert health.hangs() is None
    with health.working():
        clock.now += 10 * PATIENCE_SECONDS
        assert health.hangs() is None
    assert health.hangs() is None
    clock.now += PATIENCE_SECONDS + 1
    assert health.hangs()


def test_answers() -> None:
    """A 503 states the reason. Paths that are no probe return the metrics."""
    clock = _Clock()
    health = Health(clock)
    port = serve("127.0.0.1", 0, CollectorRegistry(), health)
    assert (200, "ok\n") == _asked(port, "/livez")
    assert (503, "no batch has been planned yet\n") == _asked(port, "/readyz")
    health.begin()
    assert (200, "ok\n") == _asked(port, "/readyz")
    clock.now = PATIENCE_SECONDS + 1
    status, said = _asked(port, "/livez")
    assert 503 == status
    assert "has not been checked" in said
    assert (200, "") == _asked(port, "/metrics")


def test_connections_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that send nothing have a limited number of threads, and are closed after a while."""
    monkeypatch.setattr(probes._SilentHandler, "timeout", 1.0)
    port = serve("127.0.0.1", 0, CollectorRegistry(), Health())
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(5 * CONNECTIONS)]
        for connection in idle:
            connection.settimeout(60)
        assert threading.active_count() <= before + CONNECTIONS
        # Each is closed: those beyond the limit at once, the others when their time is up.
        assert {b""} == {_received(connection) for connection in idle}
    assert (200, "ok\n") == _asked_in_time(port, "/livez")


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""


def _asked_in_time(port: int, path: str) -> tuple[int, str]:
    """Ask until a thread is free."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return _asked(port, path)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_the_address() -> None:
    """The pages are only on the given address."""
    port = serve("127.0.0.1", 0, CollectorRegistry(), Health())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 60)


def test_a_port_that_is_taken() -> None:
    """If the port is in use, the sink exits with the name of the setting."""
    port = serve("127.0.0.1", 0, CollectorRegistry(), Health())
    with pytest.raises(ConfigError, match=f"metrics.host 127.0.0.1, metrics.port {port}: "):
        serve("127.0.0.1", port, CollectorRegistry(), Health())


def _asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
