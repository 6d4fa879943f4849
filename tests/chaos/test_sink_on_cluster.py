"""The short form of `python -m tests.chaos.sink.on_cluster`."""

from __future__ import annotations

import pytest

from dev.servers.broker import Broker
from tests.chaos.sink.on_cluster import DEATHS, run


@pytest.mark.integration
@pytest.mark.faults
def test_deaths_in_mid_batch(broker: Broker) -> None:
    """After any death during a batch on a cluster, the tables match their histories, and each commit exists once."""
    verdict = run(broker.bootstrap, 1, list(DEATHS), histories=3)
    assert [] == verdict.wrong
    assert list(DEATHS) == [death for death, _ in verdict.killed]
