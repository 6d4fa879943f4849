"""Three brokers replicate. Workers cope when one stops and when leaders and coordinators move.

All tests share one cluster, because starting three brokers takes longer than the tests.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from dev.servers.cluster import NODES, Cluster
from dev.servers.stack import wait_until
from tests.chaos.cases import CASES, SHORT
from tests.chaos.run import execute
from tests.chaos.verify import records
from translator.config.settings import Settings
from translator.errors import RetryableError
from translator.kafka.admin import TopicAdmin

pytestmark = [pytest.mark.integration, pytest.mark.faults]

SECONDS = 180  # for each step: a timeout for hanging tests, not a measurement


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def test_a_record_survives_its_leader(cluster: Cluster) -> None:
    """A record on all in-sync replicas survives the death of the leader, under a new leader."""
    _create(cluster, "kept")
    _write(cluster, "kept", b"1")
    looking = [TopicAdmin({"bootstrap.servers": cluster.bootstrap}) for _ in range(6)]
    known = [topics.ids(["kept"]) for topics in looking]
    first = cluster.leader("kept", 0)
    first.kill()
    _write(cluster, "kept", b"2")
    with ThreadPoolExecutor(len(looking)) as pool:
        # Some clients consider the killed node the controller, and retry.
        assert known == list(pool.map(_ids_at_last, looking))
    # Each request can reach another broker, and some learn of a new leader later than others.
    wait_until("another one leads", SECONDS, lambda: first is not cluster.leader("kept", 0))
    first.start()
    cluster.wait_in_sync(["kept"])
    cluster.elect_preferred(["kept"])
    wait_until("it leads again", SECONDS, lambda: first is cluster.leader("kept", 0))
    assert [b"1", b"2"] == _read(cluster, "kept")


def test_the_coordinator_moves(cluster: Cluster) -> None:
    """The group gets a new coordinator when the node of the old one stops."""
    _create(cluster, "grouped")
    reader = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "moving", "enable.auto.commit": False, "log_level": 0}
    )

    def commits(offset: int) -> bool:
        with suppress(KafkaException):  # no coordinator yet, or still the old one
            reader.commit(offsets=[TopicPartition("grouped", 0, offset)], asynchronous=False)
            return True
        return False

    wait_until("the first is committed", SECONDS, lambda: commits(0))
    first = cluster.coordinator("moving")
    first.stop()
    wait_until("the second is committed", SECONDS, lambda: commits(1))
    wait_until("another one coordinates", SECONDS, lambda: first is not cluster.coordinator("moving"))
    reader.close()
    first.start()
    cluster.wait_in_sync(["__consumer_offsets"])


@pytest.mark.parametrize(("told", "copies"), [({}, NODES), ({"replication_factor": 1}, 1)])
def test_topics_have_as_many_copies_as_the_brokers_make(cluster: Cluster, told: dict[str, int], copies: int) -> None:
    """Topics get the brokers' default replication. A single copy, lost with its broker, must be requested."""
    output = f"copied-{copies}"
    sources = [{"name": "a", "dialect": "canal", "topics": ["raw"], "options": {"profile": "oss"}}]
    settings = {"kafka": {"bootstrap_servers": cluster.bootstrap}, "output": {"topic": output}, "sources": sources}
    TopicAdmin({"bootstrap.servers": cluster.bootstrap}).ensure(Settings.model_validate(settings | {"topics": told}))
    names = [output, *(f"{output}.{name}" for name in ("dlq", "schemas", "metadata"))]
    assert dict.fromkeys(names, copies) == {name: _copies(cluster, name) for name in names}


@pytest.mark.parametrize("name", [case.name for case in SHORT if case.brokers > 1])
def test_the_short_form_of_the_matrix(name: str, cluster: Cluster) -> None:
    """The short form of the matrix passes while leaders and the coordinator move (as in test_matrix.py)."""
    outcome = execute(CASES[name], CASES[name].size, cluster)
    assert outcome.good, f"{outcome.error or outcome.verdict}; logs in {outcome.directory}"


def _create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    cluster.wait_in_sync([topic])
    assert NODES == _copies(cluster, topic)


def _copies(cluster: Cluster, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    partitions: dict[int, PartitionMetadata] = {}
    while not partitions:  # the broker asked may not know it yet
        partitions = admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions
    return len(partitions[0].replicas)


def _write(cluster: Cluster, topic: str, value: bytes) -> None:
    failures = []
    # While replicas stop, a leader can store a record without acknowledging it. The retry must not create a duplicate.
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert 0 == producer.flush(SECONDS)
    assert [None] == failures


def _ids_at_last(topics: TopicAdmin) -> dict[str, str]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with suppress(RetryableError):
            return topics.ids(["kept"])
    return topics.ids(["kept"])


def _read(cluster: Cluster, topic: str) -> list[bytes]:
    return [record.value() for record in records(cluster.bootstrap, topic)]
