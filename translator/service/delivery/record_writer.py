"""Records into the queue of a producer, with patience while it is full, and with an end after which nothing moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.errors import FatalError
from translator.kafka.producer import RecordProducer, Report
from translator.service.delivery.base import PAUSE_SECONDS, OnStored, never

# A poll takes all reports that there are: once for so many records is enough, and keeps the reports from piling up.
_POLL_EVERY = 256


class RecordWriter:
    """Writes through one producer. The first failure stands: whatever is asked afterwards raises it."""

    def __init__(self, producer: RecordProducer) -> None:
        self._producer = producer
        self._since_poll = 0
        self.stopped = False
        self.failure: BaseException | None = None
        self.reports = 0
        """The number of reports that came in."""

    def __len__(self) -> int:
        """Return the number of records whose reports have not been taken."""
        return len(self._producer)

    def fail(self, error: BaseException) -> BaseException:
        """Keep a failure, and return the one that stands."""
        self.failure = self.failure or error
        return self.failure

    async def write(self, topic: str, partition: int, records: Sequence[Record], report: Report) -> None:
        """Hand records to the producer; wait while its queue is full, and without an end after `stop`.

        Raises:
            FatalError: the producer has given up for good.
        """
        for record in records:
            while not self._offer(topic, partition, record, report):
                await self.pause()
        self._since_poll += len(records)
        if self._since_poll >= _POLL_EVERY:
            self._since_poll = 0
            self.serve()

    def _offer(self, topic: str, partition: int, record: Record, report: Report) -> bool:
        if self.stopped:
            return False
        self._check()
        try:
            return self._producer.offer(topic, partition, record, report)
        except FatalError as error:
            raise self.fail(error) from None

    def serve(self) -> None:
        """Let reports come in.

        Raises:
            FatalError: the producer has given up for good, or another failure stands.
        """
        self._check()
        try:
            self.reports += self._producer.poll()
        except FatalError as error:
            raise self.fail(error) from None

    def _check(self) -> None:
        if self.failure is not None and not self.stopped:
            raise self.failure

    async def pause(self) -> None:
        """Let reports come in and others work; after `stop` it does not return."""
        if self.stopped:
            await never()
        self.serve()
        await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        """Take nothing any more, and drop what was not sent."""
        self.stopped = True
        self._producer.purge()


def with_offset(report: Report, on_stored: OnStored | None) -> Report:
    """Return a report that also tells where the record lies, when a caller wants to know."""
    if on_stored is None:
        return report

    def delivered(error: KafkaError | None, message: Any) -> None:
        report(error, message)
        if error is None:
            on_stored(message.offset())

    return delivered
