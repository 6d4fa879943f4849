"""Find the output for some raw records without reading a whole topic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from translator.kafka.offset_ranges import Partitions, Place, Range
from translator.operations.diff import EventRecord
from translator.operations.record_origin import RecordOrigin

# Number of offsets in the first step back through a written partition. Each step is longer than the step before it.
_FIRST_STEP, _GROWTH = 1000, 4


class OutputSearch:
    """Reads a written partition backwards, and keeps the records for some raw records.

    Args:
        whole: the written partition.
        source, place, offsets: the raw records. They are in one partition.
    """

    def __init__(
        self,
        partitions: Partitions,
        whole: Range,
        origin_of: Callable[[Any], RecordOrigin | None],
        source: str,
        place: Place,
        offsets: Collection[int],
    ) -> None:
        self._partitions = partitions
        self._whole = whole
        self._origin_of = origin_of
        self._raw = (source, *place)
        self._offsets = offsets
        self._events: dict[int, dict[int, list[EventRecord]]] = defaultdict(lambda: defaultdict(list))
        self._codes: dict[int, set[str]] = defaultdict(set)
        self._oldest: int | None = None
        self._first = whole.end

    @property
    def has_everything(self) -> bool:
        """Return whether everything that was ever written to the partition has been read."""
        return self._first == 0

    def read_all(self) -> None:
        self.read_until(lambda: False)

    def read_until(self, is_enough: Callable[[], bool]) -> None:
        step = _FIRST_STEP
        while self._first > self._whole.first and not is_enough():
            first = max(self._whole.first, self._first - step)
            for record in self._partitions.read(Range(*self._whole.place, first, self._first)):
                self._keep(record)
            self._first, step = first, step * _GROWTH

    def _keep(self, record: Any) -> None:
        origin = self._origin_of(record)
        if origin is None or origin.refused or (origin.source, origin.topic, origin.partition) != self._raw:
            return
        self._oldest = origin.offset if self._oldest is None else min(origin.offset, self._oldest)
        if origin.offset not in self._offsets:
            return
        if origin.n is None:
            self._codes[origin.offset].add(origin.content.decode())
        else:
            where = f"{record.topic()}/{record.partition()} at offset {record.offset()}"
            found = EventRecord(record.key(), record.value() or b"", record.headers() or [], where)
            self._events[origin.offset][origin.n].append(found)

    def events(self, offset: int) -> Mapping[int, list[EventRecord]]:
        """Return all copies of a raw record's events by number."""
        return self._events.get(offset, {})

    def codes(self, offset: int) -> set[str]:
        """Return the codes of a raw record's dead letters."""
        return self._codes.get(offset, set())

    def has_older(self, offset: int) -> bool:
        """Return whether a record for an earlier raw record was found."""
        return self._oldest is not None and self._oldest < offset
