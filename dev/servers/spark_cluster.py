"""Run a standalone Spark cluster on the loopback interface. It has a master, and workers that can be added and killed.

    with SparkCluster() as cluster:
        worker = cluster.add_worker()
        subprocess.run(["spark-sink", "run", ...])  # with spark.master: cluster.url

Each process listens on a free port, and logs that port. `python -m dev.servers.spark_cluster` runs a master and two
workers until Ctrl-C.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from dev.servers.broker import LOOPBACK
from dev.servers.server import Server, ServerError, hold

START_SECONDS = 180.0
"""The timeout for a start. Only a process that hangs exceeds it. On a quiet machine, a start takes 3 s."""

_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_LOCAL_IP": LOOPBACK,
    "SPARK_NO_DAEMONIZE": "1",
}


class SparkClusterError(ServerError):
    """Raised if the master or a worker is not running."""


class _Daemon(Server):
    """A process in the cluster. The process's log shows when it is ready."""

    error = SparkClusterError
    ready: re.Pattern[str]

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _environment(self) -> Mapping[str, str]:
        return {}

    def start(self) -> None:
        self._refuse_if_running("stop()")
        home = Path(pyspark.__file__).parent
        command = ["/usr/bin/env", "bash", str(home / "bin" / "spark-class"), *self._command()]
        self._launch(command, {**os.environ, "SPARK_HOME": str(home), **_DAEMON, **self._environment()})
        try:
            self.port = self._awaited_port()
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """Kill the process immediately."""
        self._end(signal.SIGKILL)

    def _awaited_port(self) -> int:
        process = self._running()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            told = self.ready.search(self.log.read_text(errors="replace"))
            if told:
                return int(told[1])
            if process.poll() is not None:
                raise self.error(f"the {self.name} exited with code {process.returncode}{self._log_tail()}")
            time.sleep(0.1)
        raise self.error(f"the {self.name} was not ready within {START_SECONDS:.0f} s{self._log_tail()}")


class Master(_Daemon):
    """The master. Applications and workers use its URL."""

    name = "spark_master"
    ready = re.compile(rf"Starting Spark master at spark://{re.escape(LOOPBACK)}:(\d+)")

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self.settled_port()}"

    def _command(self) -> list[str]:
        master = "org.apache.spark.deploy.master.Master"
        return [master, "--host", LOOPBACK, "--port", str(self.port or 0), "--webui-port", "0"]


class Worker(_Daemon):
    """A worker that starts executors. Executors have their own Python processes, and end together with the worker.

    Args:
        environment: the environment variables for the worker's executors in addition to our own, such as credentials.
    """

    name = "spark_worker"
    # After this log line, the master uses the worker.
    ready = re.compile(rf"Successfully registered with master spark://{re.escape(LOOPBACK)}:(\d+)")

    def __init__(self, master: str, cores: int, megabytes: int, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._master = master
        self._cores = cores
        self._megabytes = megabytes
        self._given = environment

    def _command(self) -> list[str]:
        size = ["--cores", str(self._cores), "--memory", f"{self._megabytes}m"]
        place = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0", "--work-dir", str(self.directory / "work")]
        return ["org.apache.spark.deploy.worker.Worker", *place, *size, self._master]

    def _environment(self) -> Mapping[str, str]:
        return {"SPARK_LOCAL_DIRS": str(self.directory / "local"), **self._given}

    def processes(self) -> list[int]:
        """Return the process IDs of the worker's executors and their Python processes. These are all processes that run
        in the worker's folder.
        """
        return [pid for pid, folder in _working_folders() if folder.is_relative_to(self.directory / "work")]

    def executors(self) -> list[int]:
        """Return the process IDs of the worker's executors alone."""
        return [pid for pid in self.processes() if _is_java(pid)]


class SparkCluster:
    """A master and its workers. A new cluster has no workers."""

    def __init__(self) -> None:
        self.master = Master()
        self.workers: list[Worker] = []

    @property
    def url(self) -> str:
        return self.master.url

    def add_worker(self, cores: int = 1, megabytes: int = 1024, environment: Mapping[str, str] | None = None) -> Worker:
        """Start another worker, and return when it has registered."""
        worker = Worker(self.url, cores, megabytes, environment or {})
        worker.start()
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.master.close()

    def __enter__(self) -> Self:
        self.master.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _working_folders() -> list[tuple[int, Path]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found.append((int(entry.name), (entry / "cwd").readlink()))
            except OSError:  # the process has exited, or belongs to another user
                continue
    return found


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    except OSError:
        return False


def _with_two_workers(cluster: SparkCluster) -> str:
    for _ in range(2):
        cluster.add_worker()
    return cluster.url


def main() -> int:
    return hold("spark_cluster", SparkCluster(), _with_two_workers)


if __name__ == "__main__":
    sys.exit(main())
