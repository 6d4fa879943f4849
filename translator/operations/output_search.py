"""Find the output for some raw records without reading a whole topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from translator.kafka.offset_ranges import Partitions, Place, Range, places_of
from translator.operations.diff import EventRecord, event_of
from translator.operations.offline_translator import OfflineTranslator
from translator.operations.record_origin import of_event
from translator.translation.dead_letter import read_dead_letter

# Number of offsets in the first step back through a written partition. Each step is longer than the step before it.
_FIRST_STEP, _GROWTH = 1000, 4


class DeadLetterSearch:
    """The dead letters of the present raw topics. Each partition of the dead-letter topic is read once.

    When partitions are added to the topic, dead letters stay where they are. All partitions are therefore read.

    Args:
        places: the raw partitions.
    """

    def __init__(self, again: OfflineTranslator, partitions: Partitions, places: Sequence[Place]) -> None:
        self._codes: dict[Place, dict[int, set[str]]] = {place: defaultdict(set) for place in places}
        topic = again.settings.output.dead_letter_topic
        self._is_compacted = again.topics.is_compacted(topic)
        ranges = [partitions.bounds(*place) for place in places_of(topic, again.facts(topic), None)]
        self._is_cut = any(range_.first for range_ in ranges)
        for range_ in ranges:
            for record in partitions.read(range_):
                self._keep(again, record)

    def _keep(self, again: OfflineTranslator, record: Any) -> None:
        letter = read_dead_letter(record.key(), record.value(), record.headers() or ())
        if letter is None or letter.output is not None:
            return
        message = letter.message
        found = self._codes.get((message.topic, message.partition))
        if (
            found is not None
            and letter.source == again.raw_topics[message.topic]
            and message.topic_id in ("-", again.facts(message.topic).id)
        ):
            found[message.offset].add(letter.code)

    def of(self, place: Place) -> Mapping[int, set[str]]:
        """Return the code of each dead letter by its raw offset."""
        return self._codes[place]

    def is_complete(self, place: Place, offset: int) -> bool:
        """Return whether the topic still has a raw record's dead letters, if there were any.

        Dead letters are written in the order of their raw partition, so retention deletes those of earlier records
        first.
        """
        first = next(iter(self._codes[place]), offset)
        return not self._is_compacted and (not self._is_cut or first < offset)


class EventSearch:
    """Reads a partition of the canonical topic backwards for the events of some raw records.

    The events of a raw partition are written in its order. Once the search has found an event of an earlier raw record,
    it has therefore found everything. The exception is a dead letter, whose events may follow at any time.

    Args:
        whole: the partition of the canonical topic.
        is_compacted: whether events may be missing anywhere.
        source: the source of the raw records.
        sample: the raw records.
        topic_id: the id of the present raw topic. A topic with the same name may have existed before.
        dead: the raw offsets with dead letters.
    """

    def __init__(
        self,
        partitions: Partitions,
        whole: Range,
        source: str,
        sample: Range,
        topic_id: str,
        dead: Collection[int],
        *,
        is_compacted: bool,
    ) -> None:
        self._partitions = partitions
        self._whole = whole
        self._is_compacted = is_compacted
        self._raw = (source, *sample.place)
        self._sample = sample
        self._scope, self._topic_id = f"{sample.topic}:{sample.partition}@", topic_id
        self._dead = dead
        self._events: dict[int, dict[int, list[EventRecord]]] = defaultdict(lambda: defaultdict(list))
        self._begin = whole.end
        # The raw offset of the first event that was read, or -1 if that event comes from an earlier topic.
        self._oldest: int | None = None

    def read(self, awaited: Mapping[int, Set[int]]) -> None:
        """Read until all events of the sample have been found.

        Args:
            awaited: the numbers of the expected events by raw offset. If a record should have no events, some may still
                have been written earlier. Reading therefore continues up to the events of an earlier record.
        """
        is_known = all(awaited.values())
        step = _FIRST_STEP
        while self._begin > self._whole.first and not self._is_past(self._sample.first):
            if is_known and all(numbers <= self.of(offset).keys() for offset, numbers in awaited.items()):
                break
            first = max(self._whole.first, self._begin - step)
            self._read(Range(*self._whole.place, first, self._begin))
            self._begin, step = first, step * _GROWTH

    def of(self, offset: int) -> Mapping[int, list[EventRecord]]:
        """Return all copies of a raw record's events by number."""
        return self._events.get(offset, {})

    def is_complete(self, offset: int) -> bool:
        """Return whether the search has found all existing events of a raw record, and none of its events has been
        deleted.

        Even the whole partition proves nothing about a record before the first event. If partitions were added to the
        topic, the events of earlier records are in another one. A dead letter has no events unless it was replayed.
        """
        is_whole = self._begin == 0 and offset in self._dead
        return not self._is_compacted and (is_whole or self._is_past(offset))

    def _is_past(self, offset: int) -> bool:
        return self._oldest is not None and self._oldest < offset

    def _read(self, range_: Range) -> None:
        oldest: int | None = None
        for record in self._partitions.read(range_):
            origin = of_event(record)
            if origin is None or origin.n is None or (origin.source, origin.topic, origin.partition) != self._raw:
                continue
            place = f"{record.topic()}/{record.partition()} at offset {record.offset()}"
            found = EventRecord(record.key(), record.value() or b"", record.headers() or [], place)
            is_present = self._is_of_present_topic(found)
            if oldest is None and origin.offset not in self._dead:
                oldest = origin.offset if is_present else -1
            if is_present and self._sample.first <= origin.offset < self._sample.end:
                self._events[origin.offset][origin.n].append(found)
        self._oldest = self._oldest if oldest is None else oldest

    def _is_of_present_topic(self, found: EventRecord) -> bool:
        """With native order, an event does not show which of several topics with the same name it comes from."""
        scope = event_of(found).pos_scope
        return not scope.startswith(self._scope) or scope == self._scope + self._topic_id
