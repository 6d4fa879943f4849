"""Write raw messages at a given rate, from a separate process that does not wait for the measurement."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Self

from confluent_kafka import Producer

from bench.generators import MessageStream
from bench.runner.running import ContestantError

SentAt = dict[int, list[float]]
"""For each raw partition, the times when messages were passed to the producer. A message's offset is its index."""

_SLICE_SECONDS = 0.002
_ANSWER_SECONDS = 120.0


class Feeding:
    """A process that first writes `first` messages, and later more on request, by repeating the stream's messages."""

    def __init__(self, bootstrap: str, topic: str, stream: MessageStream, first: int) -> None:
        # A fork would copy locks that client threads may hold.
        context = multiprocessing.get_context("spawn")
        self._connection, self._its_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._its_end, bootstrap, topic, stream, first), name="feeder", daemon=True
        )
        self.lateness: Sequence[float] = ()
        """By how many seconds messages were sent too late, with one figure for each group of messages. Set by `sent`.
        """

    def __enter__(self) -> Self:
        self._process.start()
        # The pipe signals the death of this process only if no other process has this end of the pipe open.
        self._its_end.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def pace(self, rate: float, seconds: float) -> None:
        """Make the process write `rate` messages per second, and return immediately."""
        self._connection.send((rate, seconds))

    def is_done(self) -> bool:
        """Return whether the process has written all messages or has died."""
        return self._connection.poll()

    def sent(self) -> SentAt:
        """Return the times when all messages were sent.

        Raises:
            ContestantError: the process died.
        """
        found: SentAt
        try:
            found, self.lateness = self._connection.recv()
        except EOFError:
            raise ContestantError("was not fed at this rate: the feeder failed, with the error above") from None
        return found


def _serve(connection: Connection, bootstrap: str, topic: str, stream: MessageStream, first: int) -> None:
    feeder = _Feeder(bootstrap, topic, stream)
    feeder.feed(first)
    late = feeder.pace(*connection.recv())
    connection.send((dict(feeder.sent), late))


class _Feeder:
    def __init__(self, bootstrap: str, topic: str, stream: MessageStream) -> None:
        self.sent: defaultdict[int, list[float]] = defaultdict(list)
        self._topic = topic
        self._messages = itertools.cycle(stream.messages)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})

    def feed(self, count: int) -> None:
        """Write this number of messages without a pause."""
        for message in itertools.islice(self._messages, count):
            self.sent[message.partition].append(time.time())
            self._producer.produce(self._topic, message.value, partition=message.partition)
        self._producer.poll(0)

    def pace(self, rate: float, seconds: float) -> list[float]:
        """Write `rate` messages per second. It returns how late the first message of each group was, in seconds."""
        begin = time.monotonic()
        done = 0
        late = []
        while (passed := time.monotonic() - begin) < seconds:
            if due := int(passed * rate) - done:
                late.append(passed - (done + 1) / rate)
                self.feed(due)
                done += due
            time.sleep(_SLICE_SECONDS)
        assert not self._producer.flush(_ANSWER_SECONDS), "the broker does not accept the raw messages"
        return late
