"""`spark-sink health`, with the pages that the sink serves."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from dev.servers.broker import free_port
from spark_sink.commands import cli
from spark_sink.errors import ConfigError, FatalError
from spark_sink.metrics import Metrics
from spark_sink.probes import PATIENCE_SECONDS, Health, serve
from translator.service.metrics import Metrics as TranslatorMetrics


def test_what_it_tells() -> None:
    """The sink is not ready before a batch is planned. Then it reports the latest batch, the lag and parked tables."""
    metrics, now = Metrics(10), [0.0]
    served = Health(lambda: now[0])
    url = f"http://127.0.0.1:{serve('127.0.0.1', 0, metrics.registry, served)}"
    assert f"{url}/readyz answers 503: no batch has been planned yet" == _refused(url)
    served.begin()
    assert "alive and ready; no batch yet; lag: unknown; parked tables: 0\n" == _told(url)
    metrics.batch([], {}, {"total": 1.0}, lag=7)
    told = r"alive and ready; batches since startup: 1, newest ended [-0-9]+ [:0-9]+ UTC; "
    assert re.fullmatch(f"{told}lag: 7 records; parked tables: 0\n", _told(f"{url}/"))
    now[0] = PATIENCE_SECONDS + 1
    assert _refused(url).startswith(f"{url}/livez answers 503: the query has not been checked for 301 s")


def test_nobody_answers() -> None:
    """If nobody answers, the error contains the address and the reason."""
    url = f"http://127.0.0.1:{free_port()}"
    assert re.fullmatch(f"{url} does not respond: .* refused", _refused(url, "--timeout", "0.1"))


def test_something_else_answers() -> None:
    """Another program can be alive and ready, too: the translator has the same paths."""
    health = Health()
    health.begin()
    url = f"http://127.0.0.1:{serve('127.0.0.1', 0, TranslatorMetrics('1').registry, health)}"
    with pytest.raises(ConfigError, match=f"^{url} responds but is not a spark-sink"):
        CliRunner().invoke(cli, ["health", url], catch_exceptions=False)


def test_no_address() -> None:
    """An address that is not HTTP is rejected before any request. Otherwise it could read a file."""
    ended = CliRunner().invoke(cli, ["health", "file:///etc/passwd"])
    assert (2, True) == (ended.exit_code, "file:///etc/passwd is not an address" in ended.output)


def _told(url: str) -> str:
    ended = CliRunner().invoke(cli, ["health", url], catch_exceptions=False)
    assert 0 == ended.exit_code
    return ended.stdout


def _refused(url: str, *arguments: str) -> str:
    with pytest.raises(FatalError) as refusal:
        CliRunner().invoke(cli, ["health", url, *arguments], catch_exceptions=False)
    return str(refusal.value)
