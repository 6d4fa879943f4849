"""What tests of every folder may ask for."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from dev.broker import LOOPBACK, Broker

# A timing is a benchmark, never a test: on a busy machine an example may take long, and finding one, too.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A running Kafka broker, one for the whole session: use topic names of your own, and never stop it."""
    with Broker() as running:
        yield running


@pytest.fixture
def free_port() -> Iterator[int]:
    """A loopback port that nobody listens on, and that nobody else is given while the test runs.

    It is bound and not listened on: connections are refused, and a server that sets SO_REUSEADDR, as ours and Kafka do,
    may take it.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
        port: int = reserved.getsockname()[1]
        yield port


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the broker is an integration test, said or not."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)
