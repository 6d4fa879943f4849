"""The short form of `python -m tests.chaos.sink`."""

from __future__ import annotations

import os

import pytest

from dev.servers.broker import Broker
from tests.chaos.sink.points import POINTS
from tests.chaos.sink.run import Death, run

# One between the commits of a batch, one between the deleted rows and the commit that names them, one after the commits
# of Iceberg tables, and one between commits and acknowledgement. A start takes 10 s or more.
DEATHS: list[Death] = [
    ("after a commit", 2),
    ("deleted rows remembered", 2),
    ("after staged rows are merged", 1),
    ("before the manifest", 2),
]


@pytest.mark.integration
@pytest.mark.faults
def test_killed_at_every_point(broker: Broker) -> None:
    """C2: after any kill, the tables match their histories, each commit exists once, and so does each quarantined or
    waiting event. With `CHAOS=1` in the environment, the test uses all points, otherwise four.
    """
    deaths = [(point, 1) for point in POINTS] if "CHAOS" in os.environ else DEATHS
    verdict = run(broker.bootstrap, 1, deaths, histories=12 if "CHAOS" in os.environ else 3)
    assert [] == verdict.wrong
    assert deaths == verdict.killed
