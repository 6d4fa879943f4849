"""Lend the shared broker to one test at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from dev.servers.broker import LOOPBACK, Broker
from dev.servers.registry import API, RegistryServer
from dev.servers.stack import wait_until
from tests.gate import Gate

SECONDS = 240
"""Timeout for hanging tests. The broker counts a killed worker as a member until its session expires."""


@pytest.fixture
def empty_broker(broker: Broker) -> Iterator[Broker]:
    """The shared broker, without the topics and groups that `dev.servers.stack` names. Never stop it."""
    with lent(broker):
        yield broker


@pytest.fixture(scope="module")
def module_broker(broker: Broker) -> Iterator[Broker]:
    """The same for all tests of a file."""
    with lent(broker):
        yield broker


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryServer]:
    """A schema registry shared by the whole session. Use your own subjects, and never stop it."""
    with RegistryServer() as running:
        yield running


class RegistryGate(Gate):
    """The registry behind a gate that can simulate an outage."""

    def __init__(self, registry: RegistryServer) -> None:
        super().__init__(registry.settled_port())
        self.url = f"http://{LOOPBACK}:{self.port}{API}"


@pytest.fixture
def registry_gate(registry: RegistryServer) -> Iterator[RegistryGate]:
    """A registry behind a gate that is initially shut."""
    with RegistryGate(registry) as gate:
        yield gate


@contextmanager
def lent(broker: Broker) -> Iterator[None]:
    """Delete the topics and groups created meanwhile, so that the next test can reuse their names."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    topics, groups = _topics(admin), _groups(admin)
    yield
    if added := sorted(_topics(admin) - topics):
        for future in admin.delete_topics(added).values():
            future.result(SECONDS)
    wait_until("the topics are gone", SECONDS, lambda: _topics(admin) <= topics)
    wait_until("the groups are gone", SECONDS, lambda: _without(admin, _groups(admin) - groups))


def _topics(admin: AdminClient) -> set[str]:
    """Return all topics except the broker's internal ones."""
    return {name for name in admin.list_topics(timeout=SECONDS).topics if not name.startswith("__")}


def _groups(admin: AdminClient) -> set[str]:
    return {group.group_id for group in admin.list_consumer_groups().result(SECONDS).valid}


def _without(admin: AdminClient, groups: set[str]) -> bool:
    """Return whether all these groups are deleted. A group with members cannot be deleted yet."""
    done = True
    for future in admin.delete_consumer_groups(sorted(groups)).values() if groups else ():
        try:
            future.result(SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                continue
            if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
                raise
            done = False
    return done
