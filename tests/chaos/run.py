"""One case, from its first message to the final account of all messages."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import LOOPBACK, Broker, free_port
from dev.servers.cluster import NODES, Cluster
from tests.chaos import verify
from tests.chaos.feeder import Feeder
from tests.chaos.messages import INPUTS, PARTITIONS
from tests.chaos.progress import Progress
from tests.chaos.worker import PORT, Death, Worker

if TYPE_CHECKING:
    from tests.chaos.cases import Case, Size

Servers = Broker | Cluster

# Short, so that a worker replaces a dead one without a long wait.
TIMING = {"session": 6, "rebalance": 20, "delivery": 10, "metadata_wait": 5, "topic_refresh": 1}
CATCH_UP_SECONDS = 400.0


@dataclass
class Outcome:
    """The result of one case."""

    case: str
    delivery: str
    verdict: verify.Verdict
    faults: list[str] = field(default_factory=list)
    recovery: float | None = None
    seconds: float = 0.0
    codes: dict[str, list[int]] = field(default_factory=dict)
    error: str | None = None
    directory: Path | None = None

    @property
    def good(self) -> bool:
        exactly_once = self.delivery == "exactly_once"
        return self.error is None and self.verdict.good and not (exactly_once and self.verdict.duplicates)


class Run:
    """A raw topic, its feeder, its workers and the faults."""

    def __init__(self, case: Case, size: Size, servers: Servers, delivery: str, seed: int) -> None:
        self.case = case
        self.servers = servers
        self.dice = random.Random(f"{case.name}/{seed}")
        # Use unique names, because cases and repeated runs share brokers.
        self.tag = f"{case.name}-{random.SystemRandom().randrange(16**6):06x}"
        self.directory = Path(tempfile.mkdtemp(prefix=f"chaos-{case.name}-"))
        self.raw = f"{self.tag}.raw"
        self.canonical = f"{self.tag}.canonical"
        self.faults: list[str] = []
        self.workers: list[Worker] = []
        self.began = time.monotonic()
        self._size = size
        self.delivery = delivery
        self._earlier: dict[verify.Place, str] = {}
        self._admin = AdminClient({"bootstrap.servers": servers.bootstrap, "log_level": 0})
        self._messages = INPUTS[case.input].messages(self.dice)
        self._replicas = NODES if isinstance(servers, Cluster) else 1
        self._create(self.raw, case.raw_config)
        if case.output_config:
            self._create(self.canonical, case.output_config)
        self.feeder = self._new_feeder()
        self.progress = Progress(servers.bootstrap, self.tag, self.raw)

    # -- for scenarios

    @property
    def cluster(self) -> Cluster:
        assert isinstance(self.servers, Cluster), f"{self.case.name} needs a cluster"
        return self.servers

    @property
    def broker(self) -> Broker:
        assert isinstance(self.servers, Broker), f"{self.case.name} needs a single broker"
        return self.servers

    def worker(self, deaths: list[Death] | None = None, arguments: tuple[str, ...] = ()) -> Worker:
        """Start another worker under a supervisor."""
        name = f"worker-{len(self.workers) + 1}"
        config = self.directory / f"{name}.yaml"
        config.write_text(yaml.safe_dump(self._config()), encoding="utf-8")
        worker = Worker(name, config, deaths or (), self.fault, arguments)
        self.workers.append(worker)
        return worker

    def fault(self, what: str) -> None:
        """Record a fault that has just happened. Recovery is measured from here."""
        self.faults.append(what)
        self.progress.mark(what)
        self.say(what)

    def healed(self, what: str) -> None:
        """Record the end of an outage. Recovery is measured from here."""
        self.progress.mark(what)
        self.say(what)

    def say(self, what: str) -> None:
        print(f"  [{time.monotonic() - self.began:6.1f}] {what}", flush=True)

    def pause(self, most: float = 1.5) -> None:
        """Sleep for a seeded random time."""
        time.sleep(self.dice.random() * most)

    def make_raw_again(self) -> None:
        """Delete the raw topic, which must have been read completely, and feed a new one of the same name."""
        self.feeder.enough()
        self.wait_caught_up()
        self._earlier |= verify.fed(self._topic_id(), self.feeder.sent)
        self._admin.delete_topics([self.raw])[self.raw].result(30)
        while self.raw in self._admin.list_topics(timeout=10).topics:
            time.sleep(0.1)
        self._create(self.raw, self.case.raw_config)
        self.fault("topic deleted and made again")
        self.feeder = self._new_feeder()
        self.start_feeding()

    def feed_more(self, head: int, rate: float) -> None:
        """Continue with another feeder in the same topic."""
        self.feeder = self._new_feeder()
        self.feeder.start(head, rate, 0)

    def start_feeding(self) -> None:
        size = self._size
        self.feeder.start(int(size.messages * size.head), size.rate, size.messages)

    # -- the frame of every case

    def finish(self) -> verify.Verdict:
        """Feed the rest, wait until all of it is translated, stop the workers cleanly and count."""
        self.feeder.enough()
        self.say(f"{self.feeder.count} messages are fed")
        self.wait_caught_up()
        self.say("all is committed")
        for worker in self.workers:
            code = worker.stop()
            # Others may finish the work while this one restarts. Before it installs a handler, SIGTERM kills it.
            assert code in (0, -9, -15), f"{worker.name} was told to stop and ended with {code}"
        topic_id = self._topic_id()
        allowed = self._earlier | verify.fed(topic_id, self.feeder.sent)
        required = self._earlier | verify.found(self.servers.bootstrap, self.raw, topic_id)
        assert required.items() <= allowed.items(), "the raw topic has what nobody fed"
        if not self.case.raw_config:
            assert required == allowed, "the brokers have lost raw messages"
        events = verify.records(self.servers.bootstrap, self.canonical)
        letters = verify.records(self.servers.bootstrap, f"{self.canonical}.dlq")
        return verify.judge(required, allowed, events, letters)

    def close(self, *, keep: bool) -> None:
        for worker in self.workers:
            worker.kill()
        self.progress.close()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def wait_caught_up(self) -> None:
        """Wait until everything fed is committed. Transaction markers can follow the last offset."""
        ends: dict[int, int] = {}
        for partition, offset in self.feeder.sent:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while any(self.progress.committed()[number] < end for number, end in ends.items()):
            states = f"committed {self.progress.committed()} of {ends}; exit codes {self._codes()}"
            assert time.monotonic() < deadline, f"not all is committed within {CATCH_UP_SECONDS:g} s: {states}"
            time.sleep(0.1)

    def _codes(self) -> dict[str, list[int]]:
        return {worker.name: worker.codes for worker in self.workers}

    def outcome(self, verdict: verify.Verdict, error: str | None) -> Outcome:
        seconds = time.monotonic() - self.began
        recovery = self.progress.slowest()
        return Outcome(
            *(self.case.name, self.delivery, verdict, self.faults, recovery, seconds, self._codes(), error),
            None if error is None and verdict.good else self.directory,
        )

    def _config(self) -> dict[str, Any]:
        delivery = {} if self.delivery == "at_least_once" else {"delivery": self.delivery}
        return {
            "group": self.tag,
            "kafka": {"bootstrap_servers": self.servers.bootstrap},
            "output": {"topic": self.canonical, "codec": "json"},
            "topics": {"create": True, "partitions": PARTITIONS},
            "timing": TIMING | self.case.timing,
            # With transactions, the port is part of the worker's name and must not change. Otherwise, each start
            # requests a new port, because a client may be using the previous one.
            "web": {"host": LOOPBACK, "port": free_port() if delivery else f"${{{PORT}}}"},
            "log_format": "json",
            "sources": [{"name": "raw", **INPUTS[self.case.input].source, "topics": [self.raw]}],
            **delivery,
        }

    def _create(self, topic: str, config: dict[str, str]) -> None:
        new = NewTopic(topic, PARTITIONS, self._replicas, config=config)
        self._admin.create_topics([new])[topic].result(30)

    def _topic_id(self) -> str:
        (described,) = self._admin.describe_topics(TopicCollection([self.raw])).values()
        return str(described.result(30).topic_id)

    def _new_feeder(self) -> Feeder:
        return Feeder(self.servers.bootstrap, self.raw, self._messages, transactional=self.case.transactional)


def execute(case: Case, size: Size, servers: Servers, delivery: str = "at_least_once", seed: int = 1) -> Outcome:
    """Run a case. On failure, the outcome describes the problem, and the directory is kept."""
    run = Run(case, size, servers, delivery, seed)
    verdict, error = verify.Verdict(), None
    print(f"{case.name} ({delivery}), logs in {run.directory}", flush=True)
    try:
        run.start_feeding()
        case.scenario(run, **size.parameters)
        verdict = run.finish()
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    except BaseException:
        run.close(keep=True)
        raise
    outcome = run.outcome(verdict, error)
    run.close(keep=not outcome.good)
    return outcome
