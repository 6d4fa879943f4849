"""Queue records in a producer: wait while its queue is full, and block forever after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import KafkaError

from translator.codecs.record import Record
from translator.errors import FatalError
from translator.kafka.producer import RecordProducer, Report, write_failure
from translator.service.delivery.base import PAUSE_SECONDS, OnStored, never

T = TypeVar("T")

Marks: TypeAlias = dict[tuple[str, int], int]
"""The number of records that must be delivered, by topic and partition (`RecordProducer.offer_run`)."""

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

    async def write(self, topic: str, partition: int, records: list[Record], marks: Marks) -> None:
        """Pass records to the producer. Waits while its queue is full, and forever after `stop`.

        Args:
            marks: gets the mark of the last record that was queued.

        Raises:
            FatalError: the producer has failed permanently.
        """
        left = records
        while left:
            queued = 0
            if not self.stopped:
                offer = partial(self._producer.offer_run, topic, partition, left)
                queued, marks[topic, partition] = self._call(offer)
            left = left[queued:] if queued < len(left) else []
            if left:
                await self.pause()
        self._poll_sometimes(len(records))

    async def write_reported(self, topic: str, partition: int, records: Sequence[Record], report: Report) -> None:
        """Do the same as `write`, with a callback for each record's report."""
        for record in records:
            offer = partial(self._producer.offer, topic, partition, record, report)
            while self.stopped or not self._call(offer):
                await self.pause()
        self._poll_sometimes(len(records))

    def _poll_sometimes(self, records: int) -> None:
        self._since_poll += records
        if self._since_poll >= _POLL_EVERY:
            self._since_poll = 0
            self.serve()

    def serve(self) -> None:
        """Process reports.

        Raises:
            FatalError: the producer has failed permanently, or an earlier failure occurred.
        """
        self.reports += self._call(self._producer.poll)

    def _call(self, call: Callable[[], T]) -> T:
        """Make one of the producer's calls.

        Raises:
            FatalError: the producer has failed permanently, or an earlier failure occurred.
        """
        if self.failure is not None and not self.stopped:
            raise self.failure
        try:
            return call()
        except FatalError as error:
            raise self.fail(error) from None

    def pending(self, marks: Marks) -> int:
        """Return how many of the records up to these marks have not been delivered."""
        return sum(max(0, mark - self._producer.outcome(*place).delivered) for place, mark in marks.items())

    def error(self, marks: Marks) -> str | None:
        """Return why a record up to these marks was not delivered, or None if all of them were or still may be."""
        for place, mark in marks.items():
            delivered, error = self._producer.outcome(*place)
            if error is not None and delivered < mark:
                return write_failure(place[0], error)
        return None

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


def with_offset(report: Report, on_stored: OnStored) -> Report:
    """Return a report callback that also reports the record's offset."""

    def delivered(error: KafkaError | None, message: Any) -> None:
        report(error, message)
        if error is None:
            on_stored(message.offset())

    return delivered
