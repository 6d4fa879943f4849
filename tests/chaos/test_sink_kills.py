"""The short form of `python -m tests.chaos.sink`."""

from __future__ import annotations

import os

import pytest

from dev.servers.broker import Broker
from tests.chaos.sink.points import POINTS
from tests.chaos.sink.run import Death, run

# One between the commits of a batch, one behind those of Iceberg tables, one between them and the acknowledgement; a
# start takes 10 s and more.
DEATHS: list[Death] = [("after a commit", 2), ("after staged rows are merged", 1), ("before the manifest", 2)]


@pytest.mark.integration
@pytest.mark.faults
def test_killed_at_every_point(broker: Broker) -> None:
    """C2: whatever is killed, the tables are those of the histories, each commit is made once, and what goes to
    quarantine or waits is there once. All points with `CHAOS=1` in the environment, three without."""
    deaths = [(point, 1) for point in POINTS] if "CHAOS" in os.environ else DEATHS
    verdict = run(broker.bootstrap, 1, deaths, histories=12 if "CHAOS" in os.environ else 3)
    assert [] == verdict.wrong
    assert deaths == verdict.killed
