"""What tests of every folder may ask for."""

import signal
from collections.abc import Iterator

import pytest

from dev.servers.broker import Broker, hold_port
from tests import sizes

# A shell ignores SIGINT for what it runs in its background; so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

sizes.register()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A running Kafka broker, one for the whole session: use topic names of your own, and never stop it."""
    with Broker() as running:
        yield running


@pytest.fixture
def free_port() -> Iterator[int]:
    """A loopback port that nobody listens on, and that nobody else is given while the test runs."""
    with hold_port() as reserved:
        port: int = reserved.getsockname()[1]
        yield port


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the broker is an integration test, said or not."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)
