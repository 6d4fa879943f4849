"""Raw messages at a pace, from a process of their own: who feeds must not wait for who measures."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections import defaultdict
from multiprocessing.connection import Connection
from typing import Self

from confluent_kafka import Producer

from bench.generators import MessageStream

SentAt = dict[int, list[float]]
"""By raw partition: when each of its messages was handed to the producer; the index is the offset."""

_SLICE_SECONDS = 0.01
_ANSWER_SECONDS = 120.0


class Feeding:
    """A process that writes `first` messages at once, and more when it is told to; it repeats those of the stream."""

    def __init__(self, bootstrap: str, topic: str, stream: MessageStream, first: int) -> None:
        # A fork would take the threads' locks of the clients with it.
        context = multiprocessing.get_context("spawn")
        self._connection, self._its_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._its_end, bootstrap, topic, stream, first), name="feeder", daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        # Its death is the end of the pipe only where nobody else holds that end.
        self._its_end.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def pace(self, rate: float, seconds: float) -> None:
        """Tell it to write `rate` messages a second, and go on."""
        self._connection.send((rate, seconds))

    def is_done(self) -> bool:
        """That it has written them all, or died."""
        return self._connection.poll()

    def sent(self) -> SentAt:
        """Of all messages.

        Raises:
            EOFError: the process died; what it said is on its standard error.
        """
        found: SentAt = self._connection.recv()
        return found


def _serve(connection: Connection, bootstrap: str, topic: str, stream: MessageStream, first: int) -> None:
    feeder = _Feeder(bootstrap, topic, stream)
    feeder.feed(first)
    feeder.pace(*connection.recv())
    connection.send(dict(feeder.sent))


class _Feeder:
    def __init__(self, bootstrap: str, topic: str, stream: MessageStream) -> None:
        self.sent: defaultdict[int, list[float]] = defaultdict(list)
        self._topic = topic
        self._messages = itertools.cycle(stream.messages)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})

    def feed(self, count: int) -> None:
        """Write so many messages at once."""
        for message in itertools.islice(self._messages, count):
            self.sent[message.partition].append(time.time())
            self._producer.produce(self._topic, message.value, partition=message.partition)
        self._producer.poll(0)

    def pace(self, rate: float, seconds: float) -> None:
        """Write `rate` messages a second."""
        begin = time.monotonic()
        done = 0
        while (passed := time.monotonic() - begin) < seconds:
            due = int(passed * rate) - done
            self.feed(due)
            done += due
            time.sleep(_SLICE_SECONDS)
        assert not self._producer.flush(_ANSWER_SECONDS), "the broker does not take the raw messages"
