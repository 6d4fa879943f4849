"""Remember the offsets of updates that nothing has confirmed yet. These updates need repair if they were misread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

LISTED = 1000
"""Maximum number of unconfirmed offsets to store and to list in an error."""

Listed: TypeAlias = tuple[list[int], int, int | None]
"""The stored offsets, the number of older ones, and the first of these."""


class Unconfirmed:
    """The offsets of updates that were read in one of the two ways, without confirmation."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}  # by offset
        self._dropped = 0
        self._first: int | None = None
        self._last = -1  # the last dropped offset

    def add(self, offset: int) -> None:
        self._rows[offset] = self._rows.get(offset, 0) + 1
        if len(self._rows) > LISTED:
            oldest = next(iter(self._rows))
            del self._rows[oldest]
            self._first = oldest if self._first is None else self._first
            self._last = oldest
            self._dropped += 1

    def confirm(self, offset: int) -> None:
        if offset in self._rows:
            self._rows[offset] -= 1
            if not self._rows[offset]:
                del self._rows[offset]

    def confirm_until(self, offset: int) -> None:
        while self._rows and (oldest := next(iter(self._rows))) <= offset:
            del self._rows[oldest]
        if self._last <= offset:
            self._dropped, self._first = 0, None

    def listed(self) -> Listed:
        """Return the offsets in the order in which they were added."""
        return list(self._rows), self._dropped, self._first


def unconfirmed_text(listed: Listed, before: int) -> str:
    """Return a sentence with the number and the offsets of the messages before an offset."""
    stored, dropped, first = listed
    offsets = [offset for offset in stored if offset != before]
    if not offsets:
        return "Since the start, every earlier update of this partition that was read the same way has been confirmed."
    more = f", and {dropped} not stored, from offset {first} on" if dropped else ""
    return (
        f"Since the start, {len(offsets) + dropped} earlier message(s) of this partition were read the "
        f"same way and written without confirmation: offsets {', '.join(_ranges(sorted(offsets)))}{more}. "
    )


def _ranges(offsets: Sequence[int]) -> Iterator[str]:
    """Yield ranges such as `3, 5-8`."""
    runs: Any = groupby(enumerate(offsets), lambda pair: pair[1] - pair[0])
    for _, run in runs:
        numbers = [offset for _, offset in run]
        yield str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
