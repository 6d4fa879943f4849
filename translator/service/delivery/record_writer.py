"""Queue records in a producer: wait while its queue is full, and block forever after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.errors import FatalError
from translator.kafka.producer import RecordProducer, Report
from translator.service.delivery.base import PAUSE_SECONDS, OnStored, never

# One poll processes all available reports. Polling once per `_POLL_EVERY` records is enough to keep reports from piling
# up.
_POLL_EVERY = 256


class RecordWriter:
    """Writes through one producer. After the first failure, every call raises that failure."""

    def __init__(self, producer: RecordProducer) -> None:
        self._producer = producer
        self._since_poll = 0
        self.stopped = False
        self.failure: BaseException | None = None
        self.reports = 0
        """The number of processed reports."""

    def __len__(self) -> int:
        """Return the number of records whose reports have not been processed."""
        return len(self._producer)

    def fail(self, error: BaseException) -> BaseException:
        """Store a failure, and return the first one."""
        self.failure = self.failure or error
        return self.failure

    async def write(self, topic: str, partition: int, records: Sequence[Record], report: Report) -> None:
        """Pass records to the producer. Waits while its queue is full, and forever after `stop`.

        Raises:
            FatalError: the producer has failed permanently.
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
        """Process reports.

        Raises:
            FatalError: the producer has failed permanently, or an earlier failure occurred.
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
        """Process reports and let other tasks run. Never returns after `stop`."""
        if self.stopped:
            await never()
        self.serve()
        await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        """Stop accepting records, and drop those that have not been sent."""
        self.stopped = True
        self._producer.purge()


def with_offset(report: Report, on_stored: OnStored | None) -> Report:
    """Return a report callback that also reports the record's position, if the caller needs the position."""
    if on_stored is None:
        return report

    def delivered(error: KafkaError | None, message: Any) -> None:
        report(error, message)
        if error is None:
            on_stored(message.offset())

    return delivered
