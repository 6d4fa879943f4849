"""The sink on a standalone cluster whose machines, executors and drivers die in the middle of a batch. Every second
history is in an Iceberg table, which the driver merges.

`python -m tests.chaos.sink.on_cluster` makes a run for each of ten seeds, each with every death in random order.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import yaml

from dev.jars import spark_jars
from dev.servers.broker import Broker
from dev.servers.small_spark import SMALL_SPARK
from dev.servers.spark_cluster import SparkCluster, Worker
from tests.chaos.sink.gate import FOLDER, MERGES_FOLDER, CommitGate
from tests.chaos.sink.run import Verdict, feed
from tests.chaos.sink.workload import Workload
from tests.chaos.worker import ROOT

_PATIENCE_SECONDS = 600.0

# A batch passes the gate several dozen times, so a process is held well inside it. Merges begin only once.
_MOST_PASSES = 8
_MOST_MERGES = 2

# The approximate duration of a batch's merges.
_MERGE_SECONDS = 1.5

_BATCHES = 12


class ClusterRun:
    """A topic, a cluster of two workers with one core each, a sink, and the gate at its commits.

    Args:
        histories: number of tables.
    """

    def __init__(self, bootstrap: str, seed: int, folder: Path, cluster: SparkCluster, histories: int) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.cluster = cluster
        self.workload = Workload(seed, histories)
        topic = f"cluster-{seed}-{os.urandom(3).hex()}"
        self.events = feed(bootstrap, topic, self.workload)
        self.commits = CommitGate(folder / "commits")
        self.merges = CommitGate(folder / "merges")
        self._configure(bootstrap, topic)
        self.sink = self.start()

    def _configure(self, bootstrap: str, topic: str) -> None:
        settings = {
            "pipeline": "cluster",
            "kafka": {"bootstrap_servers": bootstrap},
            "input": {"topic": topic},
            "tables": self.workload.tables(self.folder / "warehouse"),
            "checkpoint": str(self.folder / "checkpoint"),
            "batches": {"trigger_seconds": 0, "max_offsets": self.events // _BATCHES},
            "spark": {
                "master": self.cluster.url,
                "memory": "1g",
                "python": sys.executable,
                "jars": [str(jar) for jar in spark_jars()],
                "conf": {
                    **SMALL_SPARK,
                    "spark.executor.memory": "512m",
                    "spark.executor.extraJavaOptions": SMALL_SPARK["spark.driver.extraJavaOptions"],
                    "spark.python.daemon.module": "tests.chaos.sink.gate_daemon",
                },
            },
        }
        (self.folder / "sink.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")

    def add_worker(self) -> Worker:
        environment = {"PYTHONPATH": str(ROOT), FOLDER: str(self.commits.folder)}
        return self.cluster.add_worker(environment=environment)

    def start(self) -> subprocess.Popen[bytes]:
        launcher = [sys.executable, "-m", "tests.chaos.sink.gate_launcher"]
        command = [*launcher, "run", "-c", str(self.folder / "sink.yaml"), "--available-now"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), MERGES_FOLDER: str(self.merges.folder)}
        while len(self.cluster.workers) < 2:
            self.add_worker()
        with (self.folder / "log").open("ab") as log:
            self._earlier = log.tell()  # the size of the logs of earlier sinks
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def held(self, death: str) -> int | None:
        """Wait for a process held in mid-batch. Return None if the sink reaches the end of the topic first.

        The held process can belong to a driver that was killed, so the sink must have begun a batch, too. Before that,
        a signal would meet a sink that is still starting.
        """
        in_a_merge = death in IN_A_MERGE
        gate = self.merges if in_a_merge else self.commits
        gate.shut(self.random.randint(1, _MOST_MERGES if in_a_merge else _MOST_PASSES))
        self._wait(lambda: (gate.holds() is not None and self._has_begun()) or self.sink.poll() is not None)
        return gate.holds()

    def _has_begun(self) -> bool:
        """Return whether the sink that was started last has begun a batch."""
        with (self.folder / "log").open("rb") as log:
            log.seek(self._earlier)
            return b"batch started" in log.read()

    def release(self) -> None:
        self.commits.release()
        self.merges.release()

    def merge_for_a_while(self) -> None:
        """Let the merges begin and run for a while."""
        self.release()
        time.sleep(self.random.uniform(0.05, _MERGE_SECONDS))

    def end(self) -> None:
        """Let the sink reach the end of the topic."""
        self.release()
        code = self.sink.wait(_PATIENCE_SECONDS)
        assert code == 0, f"the sink ended with {code}\n{self.log()[-3000:]}"

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not until():
            assert time.monotonic() < deadline, f"nothing came\n{self.log()[-3000:]}"
            time.sleep(0.02)


def _worker_dies(run: ClusterRun, held: int) -> None:
    """Kill the held process's machine with everything on it. Another machine joins."""
    worker = _of(run.cluster, held)
    worker.kill()
    for pid in worker.executors():
        _kill(pid)
    run.release()
    run.cluster.workers.remove(worker)
    worker.close()
    run.add_worker()


def _executor_dies(run: ClusterRun, held: int) -> None:
    """Kill the executor JVM of the held process. The worker starts another, and the held process may continue."""
    for pid in _of(run.cluster, held).executors():
        _kill(pid)
    run.release()


def _driver_dies(run: ClusterRun, _held: int) -> None:
    """Kill the driver. The held process continues until it finds that nobody is waiting for it."""
    run.sink.kill()
    run.sink.wait()
    run.release()
    run.sink = run.start()


def _driver_is_stopped(run: ClusterRun, _held: int) -> None:
    """Stop the driver as a supervisor would. The batch completes, and the exit code is 0."""
    run.sink.send_signal(signal.SIGTERM)
    run.end()
    run.sink = run.start()


def _executor_dies_in_a_merge(run: ClusterRun, _held: int) -> None:
    """Kill half of the executors while Spark merges. Their tasks run again elsewhere."""
    run.merge_for_a_while()
    for pid in run.random.choice(run.cluster.workers).executors():
        _kill(pid)


def _driver_dies_in_a_merge(run: ClusterRun, held: int) -> None:
    """Kill the driver when some tables of the batch are merged, some are not, and one is in progress."""
    run.merge_for_a_while()
    _driver_dies(run, held)


DEATHS: Mapping[str, Callable[[ClusterRun, int], None]] = {
    "worker killed": _worker_dies,
    "executor killed": _executor_dies,
    "driver killed": _driver_dies,
    "driver stopped": _driver_is_stopped,
    "executor killed in a merge": _executor_dies_in_a_merge,
    "driver killed in a merge": _driver_dies_in_a_merge,
}

IN_A_MERGE = frozenset({"executor killed in a merge", "driver killed in a merge"})


def run(bootstrap: str, seed: int, deaths: Sequence[str], histories: int = 12) -> Verdict:
    """Run a sink to the end of its topic, with each of the deaths in a batch along the way.

    Raises:
        AssertionError: the sink ended without being killed.
    """
    with tempfile.TemporaryDirectory(prefix="chaos-cluster-") as name, SparkCluster() as cluster:
        one = ClusterRun(bootstrap, seed, Path(name), cluster, histories)
        verdict = Verdict(seed, one.events)
        try:
            for number, death in enumerate(deaths, 1):
                held = one.held(death)
                if held is None:
                    verdict.missed += [(late, 1) for late in deaths[number - 1 :]]
                    break
                DEATHS[death](one, held)
                verdict.killed.append((death, 1))
            one.end()
        finally:
            one.release()
            one.sink.kill()
            one.sink.wait()
        verdict.wrong = one.workload.expected().wrong(one.folder / "warehouse")
    return verdict


def _of(cluster: SparkCluster, pid: int) -> Worker:
    return next(worker for worker in cluster.workers if pid in worker.processes())


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.sink.on_cluster", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    arguments = parser.parse_args()
    killed: Counter[str] = Counter()
    failures = 0
    with Broker() as broker:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            deaths = [*DEATHS]
            Random(seed).shuffle(deaths)
            verdict = run(broker.bootstrap, seed, deaths)
            killed.update(death for death, _ in verdict.killed)
            failures += len(verdict.wrong) + len(verdict.missed)
            print(
                f"seed {seed}: {verdict.events} events, {', '.join(death for death, _ in verdict.killed)}", flush=True
            )
            for told in (*(f"not met: {death}" for death, _ in verdict.missed), *verdict.wrong):
                print(f"  {told}", flush=True)
    print(f"\n{arguments.seeds} runs, {dict(killed)}; {failures} deaths not met or tables wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
