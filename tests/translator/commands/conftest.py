"""Fixtures for the tests of several commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from tests.translator.commands._bench import Bench


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(broker.bootstrap, tmp_path)
    yield bench
    bench.close()
