"""The short form of `python -m tests.chaos.hostile`."""

from pathlib import Path

import pytest

from dev.servers.broker import Broker
from tests.chaos.hostile.run import run


@pytest.mark.integration
@pytest.mark.faults
def test_hostile_messages_disturb_nothing(tmp_path: Path) -> None:
    """No process ends, no other table is parked or wrong, and every message has an outcome."""
    with Broker() as broker:
        verdict = run(broker, tmp_path, 200, 7, changes=200)
    assert [] == verdict.wrong
    assert 800 == verdict.messages
    assert verdict.parked
