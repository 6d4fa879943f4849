"""What tests of every folder may ask for."""

from collections.abc import Iterator

import pytest

from dev.broker import Broker
from dev.broker import free_port as ask_for_free_port


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A running Kafka broker, one for the whole session: use topic names of your own, and never stop it."""
    with Broker() as running:
        yield running


@pytest.fixture
def free_port() -> int:
    """A loopback port that nobody listens on."""
    return ask_for_free_port()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the broker is an integration test, said or not."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)
