"""The reader's cache for a table: its columns, and a pattern that finds an image's values in one step.

Both only affect speed: columns are reused only for the same bytes, and a pattern matches only values that the plain
reader reads in the same way. Neither is looked up by name alone, because that caused a bug in a vendor's client (§7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from translator.dialects.dts_avro.cells import check_text
from translator.dialects.dts_avro.patterns import UNCHECKED, branch_of, image_pattern, known
from translator.dialects.dts_avro.record import Fields, Image, Raw

_MAX_COLUMNS = 256
"""Maximum number of columns in a pattern, because compiling takes up to a few milliseconds per column."""

MAX_COMPILED_COLUMNS = 4_096
"""Maximum number of columns in all patterns of a reader, because a text column takes about 15 KB in a pattern. Once the
limit is reached, other tables get no pattern.
"""

AFTER = 16
"""The number of images to read from a table before compiling a pattern, because most tables in a large source are
quiet.
"""

_MAX_COMPILED = 4
_MIN_TRIES = 64


class Room:
    """The remaining number of columns that can have patterns."""

    def __init__(self, columns: int) -> None:
        self._left = columns

    def take(self, columns: int) -> bool:
        """Reserve room for the columns. Returns whether enough room was left."""
        if columns > self._left:
            return False
        self._left -= columns
        return True

    def give_back(self, columns: int) -> None:
        """Release the columns."""
        self._left += columns
        re.purge()  # the module caches the most recently compiled patterns


class Table:
    """The facts learned about a table from its records so far."""

    def __init__(self, fields: Fields, room: Room) -> None:
        self.fields = fields
        self._room = room
        self._branches: list[set[int]] = [set() for _ in fields.columns]
        self._match: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        self._kinds: tuple[int, ...] = ()
        self._unchecked: Sequence[int] = ()
        self._compiled = self._images = self._tries = self._found = 0

    def image(self, data: bytes, at: int) -> tuple[Image, Raw, int] | None:
        """Return the values of the image that begins here and its end, or None if it must be read on the plain path.

        Raises:
            UnicodeDecodeError: a string is not UTF-8.
        """
        if self._match is None:
            return None
        self._tries += 1
        found = self._match(data, at)
        if found is None:
            if (
                self._tries >= _MIN_TRIES and self._found * 2 < self._tries
            ):  # probably long texts, for which patterns do not pay off
                self.forget()
            return None
        self._found += 1
        groups = found.groups()
        cells: Image = list(groups[::2])
        for index in self._unchecked:
            if not cells[index].isascii():
                check_text(cells[index])
        return cells, (self._kinds, groups[1::2]), found.end()

    def learn(self, cells: Image) -> None:
        """Note the structure of an image that was read on the plain path."""
        if self._compiled == _MAX_COMPILED or len(cells) != len(self._branches) or len(cells) > _MAX_COLUMNS:
            return
        self._images += 1
        new = False
        for seen, branch in zip(self._branches, map(branch_of, cells), strict=True):
            if branch not in seen and known(branch):
                seen.add(branch)
                new = True
        if self._images >= AFTER and (new or self._match is None):
            self._compile()

    def forget(self) -> None:
        """Stop using a pattern for this table."""
        if self._match is not None:
            self._room.give_back(len(self._branches))
        self._match, self._compiled = None, _MAX_COMPILED

    def _compile(self) -> None:
        if self._match is None and not self._room.take(len(self._branches)):
            self.forget()
            return
        self._compiled += 1
        pattern, self._kinds = image_pattern(self._branches)
        self._match = re.compile(pattern, re.DOTALL).match
        self._unchecked = [index for index, seen in enumerate(self._branches) if seen & UNCHECKED]
