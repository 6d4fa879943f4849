"""With `delivery: exactly_once`, readers of committed records see each event once, whatever fails."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, wait_until
from tests.integration._workers import PATIENCE, Workers, dumps, identity
from tests.translator.service._pipeline import CANAL_ROW

pytestmark = [pytest.mark.integration, pytest.mark.faults]

PARTITIONS = 4
BY_TABLE = {"topic": "tables.{table}", "codec": "debezium"}
SOURCE = {"name": "shop", "dialect": "canal", "topics": ["raw"], "options": {"profile": "oss"}}

# The service, but its process stops (SIGSTOP) after it has sent the offsets of its third transaction and before that
# transaction ends. This is the worst moment, because the position of the group is not known yet.
STOPPING = f"""#!{sys.executable}
import signal, sys, threading
import confluent_kafka
from translator.kafka import record_queue

class Stopping(confluent_kafka.Producer):
    sent = 0

    def send_offsets_to_transaction(self, *given):
        super().send_offsets_to_transaction(*given)
        self.sent += 1
        if self.sent == 3:
            # To this thread: one to the process would be another thread's to take, and this one would go on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

assert record_queue.Producer is confluent_kafka.Producer
record_queue.Producer = Stopping
from translator.commands import main
sys.exit(main())
"""


class Group:
    """Two workers, and the number of messages fed to them."""

    def __init__(self, broker: Broker, directory: Path, delivery_seconds: float) -> None:
        # On a busy machine, a process can be stopped for long. The watchdog must not end it.
        timing = {"stuck": 600, "session": 6, "rebalance": delivery_seconds + 15, "delivery": delivery_seconds}
        self.workers = Workers(
            *(broker, directory, 2, [SOURCE]), delivery="exactly_once", timing=timing, projections=[BY_TABLE]
        )
        self.workers.create(raw=PARTITIONS)
        self.stacks = self.workers.stacks
        self.fed = 0

    def feed(self, messages: int) -> None:
        """Feed messages evenly to all partitions, and return when some of them are committed."""
        before = self.committed()
        numbers = range(self.fed, self.fed + messages)
        for partition in range(PARTITIONS):
            values = [self._value(number) for number in numbers if number % PARTITIONS == partition]
            self.workers.feed("raw", values, partition)
        self.fed += messages
        wait_until("some of them are committed", PATIENCE, lambda: self.committed() > before)

    @staticmethod
    def _value(number: int) -> bytes:
        return dumps(CANAL_ROW | {"data": [{"id": str(number), "name": "a"}], "id": number})

    def committed(self) -> int:
        return sum(self.workers.committed("raw", number) for number in range(PARTITIONS))

    def wait(self) -> None:
        wait_until("everything is committed", 2 * PATIENCE, lambda: self.committed() == self.fed)

    def check(self) -> None:
        """Check that each event exists once, in the order of its raw partition."""
        self._check(CANONICAL)
        self._check("tables.shop.t")
        assert [] == self.workers.dead_letters()

    def _check(self, topic: str) -> None:
        records = self.workers.stacks[0].records
        wait_until(f"all of them are visible in {topic}", PATIENCE, lambda: len(records(topic)) >= self.fed)
        found: dict[str, list[int]] = {}
        for record in records(topic):
            partition, offset, _ = identity(record).rsplit("/", 2)
            found.setdefault(partition, []).append(int(offset))
        assert PARTITIONS == len(found)
        expected = list(range(self.fed // PARTITIONS))
        wrong = {partition: _difference(offsets, expected) for partition, offsets in found.items()}
        assert {} == {partition: text for partition, text in wrong.items() if text}, topic


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A separate broker, because the tests kill it and all workers share a group."""
    with Broker() as running:
        yield running


def test_no_fault_makes_a_duplicate(broker: Broker, tmp_path: Path) -> None:
    """Under load, workers are killed, join and leave, and the broker is killed."""
    # Longer than the broker outage. A killed process's open transaction would stay open this long without its
    # successor.
    group = Group(broker, tmp_path, 120)
    first, second = group.stacks
    try:
        first.start("translator")
        group.feed(8_000)
        second.start("translator")
        wait_until("there are two", PATIENCE, lambda: group.workers.members() == 2, first)
        for stack in (first, second):
            group.feed(8_000)
            stack.kill("translator")
            stack.start("translator")
        group.feed(8_000)
        for number in (0, 1):
            group.workers.wait_up(number)  # a worker that is still starting would exit when the broker stops
        broker.kill()
        broker.start()
        group.feed(8_000)
        assert 0 == second.stop("translator")
        group.feed(8_000)
        group.wait()
        assert 0 == first.stop("translator")
        group.check()
    finally:
        group.workers.close()


def test_a_stopped_process_writes_nothing_more(broker: Broker, tmp_path: Path) -> None:
    """If a process loses its partitions during a transaction, it exits with code 1, and the other waits for the end."""
    group = Group(broker, tmp_path, 12)  # longer than the session, so that the partitions move during the transaction
    program = tmp_path / "stopping"
    program.write_text(STOPPING)
    program.chmod(0o755)
    zombie, other = group.stacks
    try:
        process = zombie.start("translator", program=program)
        group.feed(4_000)
        other.start("translator")
        for _ in range(20):  # the number of transactions depends on the machine and on the other worker's share
            group.feed(5_000)
            if _state(process.pid) == "T":
                break
        wait_until("it has stopped", PATIENCE, lambda: _state(process.pid) == "T")
        group.feed(4_000)
        group.wait()
        os.kill(process.pid, signal.SIGCONT)
        assert 1 == zombie.wait("translator", PATIENCE)
        # It might not have sent some of its records yet. Then those expire first.
        assert group.workers.said("transaction failed") or group.workers.said("delivery failed")
        assert 0 == other.stop("translator")
        group.check()
    finally:
        group.workers.close()


def _difference(offsets: list[int], expected: list[int]) -> str:
    """Return how the offsets differ from the expected ones, or an empty text."""
    if offsets == expected:
        return ""
    times = Counter(offsets)
    twice = [offset for offset in expected if times[offset] > 1]
    missing = [offset for offset in expected if not times[offset]]
    first = next(n for n, pair in enumerate(zip_longest(offsets, expected)) if pair[0] != pair[1])
    return (
        f"{len(offsets)} events of {len(expected)}; {len(twice)} of them twice {twice[:3]}, {len(missing)} missing"
        f" {missing[:3]}; the first difference is at {first}: {offsets[max(first - 2, 0) : first + 3]}"
    )


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
