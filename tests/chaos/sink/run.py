"""One run: a topic, a sink that is killed at each of the given points and restarted, and a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.jars import spark_jars
from dev.servers.small_spark import SMALL_SPARK
from tests.chaos.sink.points import DEATH
from tests.chaos.sink.workload import PARTITIONS, Workload
from tests.chaos.worker import ROOT
from tests.spark_sink.changes import announced, record

Death = tuple[str, int]
"""A point and the number of the call there."""

_PATIENCE = 300.0
_BATCHES = 5


@dataclass
class Verdict:
    """The result of a run.

    Args:
        killed: the deaths that happened.
        missed: the deaths that did not, because the whole topic has no such call.
        wrong: differences from the expected tables.
    """

    seed: int
    events: int = 0
    killed: list[Death] = field(default_factory=list)
    missed: list[Death] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run(bootstrap: str, seed: int, deaths: Iterable[Death], histories: int = 12) -> Verdict:
    """Run the sink over a topic. Each start dies at the next point, until no point is left.

    If a death does not happen before the end of the topic, a new sink starts from the beginning. If it does not happen
    there either, it is set to the first call.

    Raises:
        AssertionError: a start ended neither by its death nor at the end of the topic.
    """
    workload = Workload(seed, histories)
    topic = f"sink-{seed}-{os.urandom(3).hex()}"
    verdict = Verdict(seed, feed(bootstrap, topic, workload))
    left = list(deaths)
    while left:
        with tempfile.TemporaryDirectory(prefix="chaos-sink-") as name:
            folder = Path(name)
            _configure(folder, bootstrap, topic, workload, verdict.events)
            _killed(folder, left, verdict)
            verdict.wrong += workload.expected().wrong(folder / "warehouse")
    return verdict


def _killed(folder: Path, left: list[Death], verdict: Verdict) -> None:
    """Run one sink to the end of the topic, and remove from `left` the deaths that happened or are impossible."""
    fresh = True
    while left:
        point, number = left[0]
        if _start(folder, f"{point}:{number}"):
            verdict.killed.append(left.pop(0))
            fresh = False
            continue
        if fresh and number > 1:
            left[0] = point, 1
        elif fresh:
            verdict.missed.append(left.pop(0))
        return
    assert not _start(folder, ""), "it died of its own"


def feed(bootstrap: str, topic: str, workload: Workload) -> int:
    """Feed the topic and return the number of events."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic(topic, PARTITIONS, 1), NewTopic(f"{topic}.schemas", 1, 1)]
    for created in admin.create_topics(topics).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for schema in workload.schemas():
        producer.produce(f"{topic}.schemas", announced(schema), schema.topic_key, 0)
    records = workload.records()
    for sent in records:
        producer.produce(topic, record(sent.event), None, sent.partition)
    assert 0 == producer.flush(60)
    return len(records)


def _configure(folder: Path, bootstrap: str, topic: str, workload: Workload, events: int) -> None:
    settings = {
        "pipeline": "chaos",
        "kafka": {"bootstrap_servers": bootstrap},
        "input": {"topic": topic},
        "tables": workload.tables(folder / "warehouse"),
        "checkpoint": str(folder / "checkpoint"),
        "batches": {"trigger_seconds": 0, "max_offsets": events // _BATCHES},
        "spark": {
            "master": "local[2]",
            "memory": "1g",
            "jars": [str(jar) for jar in spark_jars()],
            "conf": {**SMALL_SPARK, "spark.python.daemon.module": "tests.chaos.sink.daemon"},
        },
    }
    (folder / "sink.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def _start(folder: Path, death: str) -> bool:
    """Run the sink to the end of the topic, and return whether it died as planned."""
    command = [sys.executable, "-m", "tests.chaos.sink.launcher", "run", "-c", str(folder / "sink.yaml")]
    with (folder / "log").open("ab") as log:
        ended = subprocess.run(
            [*command, "--available-now"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), DEATH: death},
            timeout=_PATIENCE,
            check=False,
        )
    if ended.returncode == -9 and death:
        return True
    tail = (folder / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
    assert ended.returncode == 0, f"the sink ended with {ended.returncode}\n{tail}"
    return False
