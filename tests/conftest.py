"""Fixtures for the tests of every folder."""

import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from dev.servers.broker import Broker, hold_port
from tests import sizes

# A shell ignores SIGINT in its background jobs, and every process that a test starts and interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

sizes.register()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A running Kafka broker shared by the whole session. Use your own topic names, and never stop it."""
    with Broker() as running:
        yield running


@pytest.fixture
def free_port() -> Iterator[int]:
    """A free loopback port that no other test gets while this one runs."""
    with hold_port() as reserved:
        port: int = reserved.getsockname()[1]
        yield port


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the broker as an integration test."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what skipped tests would have shown. `.ci/run` repeats these lines at its end."""
    skipped = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in sorted(skipped.items()):
        terminalreporter.write_line(f"NOT SHOWN by {count} tests: {reason.removeprefix('Skipped: ')}")
