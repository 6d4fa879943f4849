"""The probes of the sink."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from spark_sink.errors import ConfigError
from spark_sink.probes import PATIENCE_SECONDS, Health, serve


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
    assert f"the query was not checked for {PATIENCE_SECONDS + 1:.0f} s" == health.hangs()
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
    port = serve(0, CollectorRegistry(), health)
    assert (200, "ok\n") == _asked(port, "/livez")
    assert (503, "no batch has been planned yet\n") == _asked(port, "/readyz")
    health.begin()
    assert (200, "ok\n") == _asked(port, "/readyz")
    clock.now = PATIENCE_SECONDS + 1
    status, said = _asked(port, "/livez")
    assert 503 == status
    assert "was not checked" in said
    assert (200, "") == _asked(port, "/metrics")


def test_a_port_that_is_taken() -> None:
    """If the port is in use, the sink exits with the name of the setting."""
    port = serve(0, CollectorRegistry(), Health())
    with pytest.raises(ConfigError, match=f"metrics.port {port}: "):
        serve(port, CollectorRegistry(), Health())


def _asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
