"""Run three Kafka brokers in a KRaft cluster on this machine. Each can be stopped, suspended, killed and restarted.

    with Cluster() as cluster:
        cluster.leader("topic", 0).kill()

Every node is both a broker and a controller. The cluster keeps its quorum if one node is down. Topics have three
replicas, two of which must be in sync. `python -m dev.servers.cluster` runs a cluster until Ctrl-C.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, PartitionMetadata

from dev.servers.broker import (
    LOOPBACK,
    PORT_ATTEMPTS,
    START_SECONDS,
    Broker,
    BrokerError,
    PortTakenError,
    free_port,
    new_cluster_id,
)
from dev.servers.server import ServerError, hold

NODES = 3
IN_SYNC = 2

SETTINGS = {
    "default.replication.factor": str(NODES),
    "min.insync.replicas": str(IN_SYNC),
    "offsets.topic.replication.factor": str(NODES),
    "transaction.state.log.replication.factor": str(NODES),
    "transaction.state.log.min.isr": str(IN_SYNC),
    "share.coordinator.state.topic.replication.factor": str(NODES),
    "share.coordinator.state.topic.min.isr": str(IN_SYNC),
    # A replica that is down leaves the in-sync set after this time (default: 30 s).
    "replica.lag.time.max.ms": "5000",
    # Tests decide when partition leaders move back.
    "auto.leader.rebalance.enable": "false",
    # Two of three nodes may have to elect a controller while the test machine is busy, so the defaults of 1 and 2 s are
    # too short.
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "4000",
}


class Node(Broker):
    """One broker in a cluster. Its ports are chosen before the first start, because the other brokers must know
    them.
    """

    heap = "320m"

    def __init__(self, number: int, directory: Path, ports: tuple[int, int], cluster: Cluster) -> None:
        super().__init__(ports[0], directory, cluster.settings)
        self.number = number
        self._controller_port = ports[1]
        self._cluster = cluster

    def begin(self) -> None:
        """Launch the broker. A single broker does not respond yet, because a controller needs two nodes."""
        self._begin(self.settled_port())

    def finish(self) -> None:
        """Wait until the broker responds."""
        self._finish(self.settled_port())

    @property
    def died(self) -> bool:
        """Return whether the broker has exited unexpectedly."""
        return self._process is not None and self._process.poll() is not None

    def freeze(self) -> None:
        """Suspend the broker with SIGSTOP. Its connections stay open but do not respond."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _settings(self, port: int) -> dict[str, str]:
        own = {
            "node.id": str(self.number),
            "controller.quorum.voters": self._cluster.voters,
            **self._places(port, self._controller_port),
        }
        return SETTINGS | own

    def _cluster_id(self) -> str:
        return self._cluster.id


class Cluster:
    """A cluster's nodes, and their leaders.

    Args:
        settings: Kafka settings for every node that override ours.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.settings = dict(settings or {})
        self.nodes: list[Node] = []
        self.id = new_cluster_id()
        self.voters = ""
        self.directory = Path(tempfile.mkdtemp(prefix="cdc-cluster-"))

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> None:
        """Start all nodes, and return when each node knows all others."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self._settle()
            try:
                for node in self.nodes:
                    node.begin()
                for node in self.nodes:
                    node.finish()
            except (
                PortTakenError
            ):  # a port was taken in the meantime; nobody has our addresses yet, so choose other ports
                self._kill()
                if attempt == PORT_ATTEMPTS:
                    raise
            except BaseException:
                self._kill()
                raise
            else:
                break
        self._wait(
            f"{NODES} brokers know each other", lambda: len(self._admin().list_topics(timeout=5).brokers) == NODES
        )

    def _settle(self) -> None:
        ports: set[int] = set()
        while len(ports) < 2 * NODES:
            ports.add(free_port())
        pairs = list(zip(*[iter(ports)] * 2, strict=True))
        self.voters = ",".join(f"{number}@{LOOPBACK}:{port}" for number, (_, port) in enumerate(pairs, 1))
        for number in range(1, NODES + 1):
            shutil.rmtree(self.directory / str(number), ignore_errors=True)
        self.nodes = [Node(number, self.directory / str(number), pair, self) for number, pair in enumerate(pairs, 1)]

    def _kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def close(self) -> None:
        """Stop every running node and remove the directory.

        Raises:
            ServerError: a node had exited unexpectedly. The directory remains.
        """
        died = [node for node in self.nodes if node.died]
        for node in self.nodes:
            node.kill()  # when stopped gracefully, the last node would search for a controller until a timeout
        if died:
            raise BrokerError(f"exited unexpectedly: {', '.join(f'node {node.number}, {node.log}' for node in died)}")
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ServerError as ended:
            if error is None:
                raise
            error.add_note(str(ended))

    # -- leaders and coordinators

    def node(self, number: int) -> Node:
        return self.nodes[number - 1]

    def leader(self, topic: str, partition: int) -> Node:
        """Return a partition's leader. Wait until the partition has a leader, and the broker knows the leader."""

        def led_by() -> int:
            one = self._described(topic).get(partition)
            return 0 if one is None else int(one.leader)

        return self._known(f"{topic}/{partition} has a leader", led_by)

    def coordinator(self, group: str) -> Node:
        """Return a consumer group's coordinator. Wait until a coordinator responds."""

        def coordinated_by() -> int:
            admin = (
                self._admin()
            )  # keep the client until it has a response, because a dropped client cancels its requests
            (described,) = admin.describe_consumer_groups([group]).values()
            return int(described.result(20).coordinator.id)

        return self._known(f"{group} has a coordinator", coordinated_by)

    def _known(self, what: str, ask: Callable[[], int]) -> Node:
        """Return the node with the number that `ask` returns. Wait for a valid number. Brokers return 0 or -1 if there
        is no such node.
        """
        found = 0

        def is_known() -> bool:
            nonlocal found
            found = ask()
            return found > 0

        self._wait(what, is_known)
        return self.node(found)

    def wait_in_sync(self, topics: Iterable[str]) -> None:
        """Return when all replicas of these topics are in sync."""
        for topic in topics:
            self._wait(f"the replicas of {topic} are in sync", partial(self._is_in_sync, topic))

    def _is_in_sync(self, topic: str) -> bool:
        found = self._described(topic).values()
        return bool(found) and all(len(one.isrs) == len(one.replicas) and one.leader > 0 for one in found)

    def elect_preferred(self, topics: Iterable[str]) -> None:
        """Move these topics' partitions back to their first replicas, which must be in sync."""
        wanted = [TopicPartition(topic, number) for topic in topics for number in self._described(topic)]
        admin = self._admin()
        for place, error in admin.elect_leaders(ElectionType.PREFERRED, wanted).result(20).items():
            if error is not None and error.code() != KafkaError.ELECTION_NOT_NEEDED:
                raise BrokerError(f"{place}: {error.str()}")

    def _described(self, topic: str) -> dict[int, PartitionMetadata]:
        return dict(self._admin().list_topics(topic, timeout=10).topics[topic].partitions)

    def _admin(self) -> AdminClient:
        # Use a new client each time, so that its first response is up to date. Callers keep the client, because a
        # dropped client cancels its requests.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})

    @staticmethod
    def _wait(what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                if ready():
                    return
            except (KafkaException, TimeoutError):  # this node is stopping or does not respond: ask another node
                pass
            time.sleep(0.2)
        raise BrokerError(f"{what}: not within {START_SECONDS:.0f} s")


def _address(cluster: Cluster) -> str:
    print(f"data and logs are in {cluster.directory}; press Ctrl-C to stop", file=sys.stderr)
    return cluster.bootstrap


def main() -> int:
    return hold("cluster", Cluster(), _address)


if __name__ == "__main__":
    sys.exit(main())
