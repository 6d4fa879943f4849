"""A real Apache Kafka broker on this machine, for tests and the demo: one KRaft node, loopback only.

    with Broker() as broker:
        AdminClient({"bootstrap.servers": broker.bootstrap})

`python -m dev.broker` runs one until Ctrl-C.
"""

import argparse
import atexit
import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from dev.jars import JarsError, broker_jars
from dev.java import JavaError, find_java

LOOPBACK = "127.0.0.1"
TETHER = Path(__file__).with_name("tether.py")

START_SECONDS = 60.0  # 4 s on a quiet machine
STOP_SECONDS = 30.0  # it flushes and closes its logs; then it is killed
PORT_ATTEMPTS = 5
PORT_PAUSE_SECONDS = 1.0
LOG_TAIL_LINES = 30

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # A topic that a test forgot to create must be an error, as it is in production.
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    # One node: nothing can be replicated, and internal topics of 50 partitions cost seconds at first use.
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # Consumers start at once, and tests may choose short sessions.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # After a kill the controller refuses the broker until its old registration has run out (default: 9 s). Much shorter
    # than this, and a broker on a busy machine is taken for dead.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # Test records carry the times of their samples: with any retention, those of 2022 are deleted while one looks.
    "log.retention.ms": "-1",
    # The default, 128 MiB, is a quarter of our heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",  # smallest and quickest to start
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.apache.logging.log4j.level=INFO",  # without a configuration file log4j says errors only
)


class BrokerError(Exception):
    """The broker does not run; the message holds the end of its log and where the rest is."""


class PortTakenError(BrokerError):
    """Another process has the port."""


class Broker:
    """A broker that can be stopped, killed and started again on the same directory and port.

    `bootstrap`, `directory` and `pid` are what tests ask for. Without a directory it makes one, and removes it at the
    end unless something went wrong. Start it from a thread that outlives it (the main thread, say): Linux ends the
    broker together with the thread that started it.
    """

    def __init__(self, port: int | None = None, directory: Path | None = None) -> None:
        self._port = port
        self._owns_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="cdc-broker-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        if self._port is None:
            raise BrokerError("the broker has no address before its first start; call start()")
        return f"{LOOPBACK}:{self._port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        """Return when the broker answers. The first start settles the port; later ones keep it."""
        if self._process is not None:
            raise BrokerError(f"the broker runs already (process {self._process.pid}); call stop() or kill() first")
        for attempt in range(1, PORT_ATTEMPTS + 1):
            # Between asking for a free port and using it somebody else may take it: ask again. A settled port cannot
            # be exchanged, clients hold its address; it is waited for.
            port = self._port or free_port()
            try:
                self._start_once(port, controller_port=free_port())
            except PortTakenError:
                if attempt == PORT_ATTEMPTS:
                    raise
                time.sleep(PORT_PAUSE_SECONDS)
            else:
                self._port = port
                return

    def stop(self) -> None:
        """End it in order; its data stay for another start()."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL); its data stay for another start()."""
        self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code when it ends by itself."""
        return self._running().wait()

    def close(self) -> None:
        """Stop it, if it runs, and remove the directory, if it is our own. A broker that died by itself is an error."""
        died = None if self._process is None else self._process.poll()
        self._end(signal.SIGTERM)
        if died is not None:
            raise BrokerError(f"the broker ended by itself with exit code {died}{self._log_tail()}")
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BrokerError as ended:
            if error is None:
                raise
            error.add_note(str(ended))  # the likely reason, beside the error that it caused

    def _start_once(self, port: int, controller_port: int) -> None:
        if not _is_free(port):  # Kafka finds out too, four seconds later
            raise PortTakenError(f"port {port} of {LOOPBACK} is taken by another process; name another, or none")
        self._write_settings(port, controller_port)
        # The log starts anew, so that an old "address in use" is not read as today's; the last run's is kept.
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".previous.log"))
        if not (self.directory / "data" / "meta.properties").exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-S", TETHER, str(os.getpid()), *self._java("kafka.Kafka", self._settings_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                process_group=0,  # Ctrl-C in a terminal is for us; we then stop the broker in order
            )
        atexit.register(self._end, signal.SIGTERM)
        try:
            self._wait_until_it_answers(f"{LOOPBACK}:{port}")
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def _write_settings(self, port: int, controller_port: int) -> None:
        settings = SETTINGS | {
            "log.dirs": str(self.directory / "data"),
            "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        }
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format(self) -> None:
        # Kafka wants a UUID in URL-safe base64; a leading dash would be read as an option.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", self._settings_file)
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, check=False)
        if done.returncode != 0:
            self.log.write_text(done.stdout + done.stderr)
            raise BrokerError(f"the broker's directory could not be formatted{self._log_tail()}")

    def _java(self, main_class: str, *arguments: str | Path) -> list[str]:
        class_path = os.pathsep.join(map(str, broker_jars()))
        return [str(find_java().executable), *JVM_OPTIONS, "-cp", class_path, main_class, *map(str, arguments)]

    def _wait_until_it_answers(self, bootstrap: str) -> None:
        process = self._running()
        # log_level 0: that nobody answers yet is no news. Kept in a name: a dropped client cancels its own request.
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                error = (
                    PortTakenError if "Address already in use" in self.log.read_text(errors="replace") else BrokerError
                )
                raise error(f"the broker ended at its start with exit code {process.returncode}{self._log_tail()}")
            try:
                admin.list_topics(timeout=0.5)
            except KafkaException:
                continue
            return
        raise BrokerError(f"the broker did not answer at {bootstrap} within {START_SECONDS:.0f} s{self._log_tail()}")

    def _end(self, how: signal.Signals) -> None:
        """Send the signal and wait; nothing happens when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(self._end)
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError("the broker does not run; call start()")
        return self._process

    @property
    def _settings_file(self) -> Path:
        return self.directory / "server.properties"

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"; its log, {self.log}, ends:", *lines[-LOG_TAIL_LINES:]])


def free_port() -> int:
    """A port that was free a moment ago; whoever binds it must be ready to ask again."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Kafka binds: connections of a broker that was just killed, still fading away, do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.broker", description="Run a Kafka broker until Ctrl-C.")
    parser.add_argument("--port", type=int, help="port of the broker; a free one when not given")
    parser.add_argument("--directory", type=Path, help="where it keeps its data; when not given, removed at the end")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with Broker(arguments.port, arguments.directory) as broker:
            print(broker.bootstrap, flush=True)
            print(f"data and log in {broker.directory}; Ctrl-C ends it", file=sys.stderr)
            code = broker.wait()
            print(f"broker: ended by itself with exit code {code}, see {broker.log}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0
    except (BrokerError, JarsError, JavaError) as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM means the same as Ctrl-C: stop the broker in order."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
