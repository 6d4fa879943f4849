"""Run a real Apache Kafka broker on this machine, for tests and the demo. It is one KRaft node, on loopback only.

    with Broker() as broker:
        AdminClient({"bootstrap.servers": broker.bootstrap})

`python -m dev.servers.broker` runs a broker until Ctrl-C.
"""

import base64
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.jars import broker_jars
from dev.java import find_java
from dev.servers.class_archive import archive_options
from dev.servers.server import Server, ServerError, run_until_interrupted

LOOPBACK = "127.0.0.1"

START_SECONDS = 180.0  # 4 s on a quiet machine, up to two minutes with a load of 20 per processor
PORT_ATTEMPTS = 5
PORT_PAUSE_SECONDS = 1.0

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    # A topic that a test forgets to create must be an error, as in production.
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    # With a single node, nothing can be replicated. Internal topics with 50 partitions would take seconds at first use.
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # Interval for aborting old transactions, which delays read_committed consumers (default: 10 s).
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # Consumers start immediately, and tests can choose short sessions.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # After a kill, the controller rejects the broker until its old registration expires (default: 9 s). With a much
    # lower value, the controller would treat a broker on a busy machine as dead.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # Test records have the timestamps of the samples. With any retention, the records from 2022 would be deleted
    # immediately.
    "log.retention.ms": "-1",
    # The default, 128 MiB, is a quarter of our heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

JVM_OPTIONS = (
    "-XX:+UseSerialGC",  # needs the least memory and starts fastest
    "-XX:TieredStopAtLevel=1",  # the second compiler pays off only after minutes of load
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.apache.logging.log4j.level=INFO",  # without a configuration file, log4j only logs errors
)


@dataclass(frozen=True)
class Extra:
    """Additions to a broker's plain listener; see `dev.servers.secured`.

    `listeners` has the additional listeners' security protocols by name. Each listener gets its own port.
    """

    listeners: Mapping[str, str]
    settings: Mapping[str, str]
    format_options: tuple[str, ...] = ()
    jvm_options: tuple[str, ...] = ()


PLAIN = Extra({}, {})


class BrokerError(ServerError):
    """Raised if the broker is not running."""


class PortTakenError(BrokerError):
    """Raised if another process uses the port."""


class Broker(Server):
    """A broker that can be stopped, killed and restarted with the same directory and port.

    Tests use `bootstrap`, `directory` and `pid`. If something failed, a directory that the broker created is kept.

    Args:
        settings: Kafka settings that override ours.
    """

    name = "broker"
    error = BrokerError
    heap = "512m"

    def __init__(
        self,
        port: int | None = None,
        directory: Path | None = None,
        settings: Mapping[str, str] | None = None,
        extra: Extra = PLAIN,
    ) -> None:
        super().__init__(port, directory)
        self._given = dict(settings or {})
        self._extra = extra
        self._ports: dict[str, int] = {}

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.settled_port()}"

    def address(self, listener: str) -> str:
        """Return the bootstrap address for one of the additional listeners."""
        return f"{LOOPBACK}:{self._ports[listener]}"

    def start(self) -> None:
        self._refuse_if_running("stop() or kill()")
        for attempt in range(1, PORT_ATTEMPTS + 1):
            # Another process can take a free port before we use it. In that case, choose another port. A port that is
            # already settled cannot change, because clients know it, so wait until the port is free.
            port = self.port or free_port()
            if self.port is None:
                self._ports = {}
                for name in self._extra.listeners:
                    self._ports[name] = self._another_port(port)
            try:
                self._begin(port)
                self._finish(port)
            except PortTakenError:
                if attempt == PORT_ATTEMPTS:
                    raise
                time.sleep(PORT_PAUSE_SECONDS)
            else:
                self.port = port
                return

    def kill(self) -> None:
        """Kill the broker with SIGKILL, as a power failure would. The broker's data remains for another start()."""
        self._end(signal.SIGKILL)

    def _begin(self, port: int) -> None:
        """Launch the process, which does not respond yet."""
        if not _is_free(port):  # Kafka would also notice, but four seconds later
            raise PortTakenError(f"port {port} of {LOOPBACK} is in use by another process; choose another one, or none")
        settings = SETTINGS | self._settings(port) | self._given
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        # Start a new log, so that an old "address in use" line does not count. The previous log is kept.
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".previous.log"))
        if not (self.directory / "data" / "meta.properties").exists():
            self._format()
        self._launch(self._java("kafka.Kafka", self._settings_file))

    def _finish(self, port: int) -> None:
        """Wait until the process responds. Stop the process if it does not respond."""
        try:
            self._wait_until_it_answers(f"{LOOPBACK}:{port}")
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def _settings(self, port: int) -> dict[str, str]:
        """Return settings that are not in SETTINGS."""
        controller_port = self._another_port(port)
        return {
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
            **self._places(port, controller_port),
        }

    def _another_port(self, port: int) -> int:
        """Return a free port on which nothing listens. The system may return the same port twice."""
        taken = {port, *self._ports.values()}
        while (found := free_port()) in taken:
            pass
        return found

    def _places(self, port: int, controller_port: int) -> dict[str, str]:
        advertised = [f"{name}://{LOOPBACK}:{number}" for name, number in {"PLAINTEXT": port, **self._ports}.items()]
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._extra.listeners}
        return {
            **self._extra.settings,
            "log.dirs": str(self.directory / "data"),
            "listeners": ",".join([*advertised, f"CONTROLLER://{LOOPBACK}:{controller_port}"]),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        }

    def _cluster_id(self) -> str:
        return new_cluster_id()

    def _format(self) -> None:
        options: list[str | Path] = ["-t", self._cluster_id(), "-c", self._settings_file, *self._extra.format_options]
        command = self._java("kafka.tools.StorageTool", "format", *options)
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, check=False)
        if done.returncode != 0:
            self.log.write_text(done.stdout + done.stderr)
            raise BrokerError(f"the broker's directory could not be formatted{self._log_tail()}")

    def _java(self, main_class: str, *arguments: str | Path) -> list[str]:
        java, jars = find_java().executable, broker_jars()
        options = [f"-Xmx{self.heap}", *JVM_OPTIONS, *self._class_options(java, jars), *self._extra.jvm_options]
        return [str(java), *options, "-cp", os.pathsep.join(map(str, jars)), main_class, *map(str, arguments)]

    def _class_options(self, java: Path, jars: Sequence[Path]) -> list[str]:
        return archive_options(java, jars, _train)

    def _wait_until_it_answers(self, bootstrap: str) -> None:
        process = self._running()
        # log_level 0: failed connections are expected at this point. The variable keeps the client alive, because a
        # dropped client would cancel its request.
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                error = (
                    PortTakenError if "Address already in use" in self.log.read_text(errors="replace") else BrokerError
                )
                raise error(f"the broker exited at startup with code {process.returncode}{self._log_tail()}")
            try:
                admin.list_topics(timeout=0.5)
            except KafkaException:
                continue
            return
        raise BrokerError(f"the broker did not respond at {bootstrap} within {START_SECONDS:.0f} s{self._log_tail()}")

    @property
    def _settings_file(self) -> Path:
        return self.directory / "server.properties"


class _Trainee(Broker):
    """A broker that runs with the given options and without a class archive."""

    def __init__(self, options: list[str]) -> None:
        super().__init__()
        self._options = options
        self._formatted = False

    def _format(self) -> None:
        super()._format()
        self._formatted = True

    def _class_options(self, java: Path, jars: Sequence[Path]) -> list[str]:
        return self._options if self._formatted else []


def _train(options: list[str]) -> None:
    """Run a broker that does each kind of work once."""
    with _Trainee(options) as broker:
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        admin = AdminClient(client)
        admin.create_topics([NewTopic("training", 1, 1)])["training"].result(START_SECONDS)
        producer = Producer(client | {"transactional.id": "training"})
        producer.init_transactions(START_SECONDS)
        producer.begin_transaction()
        producer.produce("training", b"value", b"key")
        producer.commit_transaction(START_SECONDS)
        reader = Consumer(client | {"group.id": "training", "auto.offset.reset": "earliest"})
        reader.subscribe(["training"])
        reader.consume(1, START_SECONDS)
        reader.commit(asynchronous=False)
        reader.close()


def new_cluster_id() -> str:
    """Return a new cluster ID for Kafka: a UUID in URL-safe base64 without a leading dash."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def free_port() -> int:
    """Return a port that was free a moment ago. Another process may take it in the meantime, so callers must be able to
    retry.
    """
    with hold_port() as held:
        port: int = held.getsockname()[1]
        return port


def hold_port() -> socket.socket:
    """Reserve a free port. Until the reservation is closed, the system does not assign the port to any other process.

    If a process knows the port, it can listen on it any number of times with SO_REUSEADDR, as servers do.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, 0))
    return held


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Bind in the same way as Kafka, so that closing connections from a killed broker do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def main() -> int:
    return run_until_interrupted(Broker, "Kafka broker", lambda broker: broker.bootstrap)


if __name__ == "__main__":
    sys.exit(main())
