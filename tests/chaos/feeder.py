"""Feed a raw topic during faults, and record what the brokers acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Producer

from tests.chaos.messages import EXPECT, Fed

TRANSACTION = 200
ABORTED_EVERY = 5
_SLICE = 20


class Feeder:
    """Feed messages in order from a thread: first a burst, then a fixed rate during faults, then the rest in a burst.

    Args:
        transactional: write in transactions, and abort every fifth.
    """

    def __init__(self, bootstrap: str, topic: str, messages: Iterator[Fed], *, transactional: bool = False) -> None:
        self.sent: dict[tuple[int, int], str] = {}
        """(partition, offset) -> expected result, for acknowledged and committed messages."""
        self._topic = topic
        self._messages = messages
        self._transactional = transactional
        self._transactions = 0
        self._failed: list[str] = []
        self._count = 0
        self._plan: _Plan | None = None
        self._enough = threading.Event()
        config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 300_000,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
        if transactional:
            config |= {"transactional.id": f"feeder-{topic}", "message.timeout.ms": 60_000}
        self._producer = Producer(config)
        if transactional:
            self._producer.init_transactions(60)
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    @property
    def count(self) -> int:
        """Return the number of messages sent, without aborted ones."""
        return self._count

    def start(self, head: int, rate: float, least: int) -> None:
        """Feed a burst of `head` messages, then `rate` per second until `enough`, then the rest of `least`."""
        self._plan = _Plan(head, rate, least)
        self._thread.start()

    def enough(self) -> None:
        """End the phase of faults: feed the rest of `least` in a burst, and return when the brokers have everything."""
        self._enough.set()
        self._thread.join()
        if self._failed:
            raise AssertionError(f"the feeder could not write: {self._failed[0]}")

    def _run(self) -> None:
        plan = self._plan
        assert plan is not None
        try:
            self._feed(plan.head)
            due = time.monotonic()
            while not self._enough.is_set():
                fed = self._count
                self._feed(_SLICE)
                due = max(
                    due + (self._count - fed) / plan.rate, time.monotonic() - 1
                )  # only a small part of an outage is made up for
                time.sleep(max(0.0, due - time.monotonic()))
            self._feed(plan.least - self._count)
            self._producer.flush(300)
        except Exception as error:
            self._failed.append(repr(error))

    def _feed(self, count: int) -> None:
        """Feed a multiple of the transaction size if transactional."""
        end = self._count + count
        while self._count < end:
            if self._transactional:
                self._transaction()
            else:
                self._produce(next(self._messages), self.sent)
                self._count += 1

    def _transaction(self) -> None:
        self._transactions += 1
        sent: dict[tuple[int, int], str] = {}
        self._producer.begin_transaction()
        if self._transactions % ABORTED_EVERY == 0:
            for number in range(TRANSACTION // 4):
                self._produce(Fed(number % 4, b"aborted", b"aborted", "aborted"), sent)
            self._producer.flush(60)
            self._producer.abort_transaction(60)
            return
        for _ in range(TRANSACTION):
            self._produce(next(self._messages), sent)
        self._producer.commit_transaction(60)
        self.sent |= sent
        self._count += TRANSACTION

    def _produce(self, message: Fed, sent: dict[tuple[int, int], str]) -> None:
        def report(error: object, record: object) -> None:
            if error is not None:
                self._failed.append(str(error))
            else:
                sent[record.partition(), record.offset()] = message.expect  # type: ignore[attr-defined]

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    message.value,
                    message.key,
                    message.partition,
                    on_delivery=report,
                    headers=[(EXPECT, message.expect.encode())],
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)


@dataclass(frozen=True)
class _Plan:
    head: int
    rate: float
    least: int
