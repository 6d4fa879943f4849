"""What the reader remembers of a table: its columns, and a pattern that finds the values of an image in one step.

Both save time and change nothing: columns are used for the same bytes only, and a pattern matches nothing but what the
plain reader reads alike. Neither the one nor the other is told by a name alone, which did harm in a vendor's client
(formats/dts_avro.md section 7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from translator.dialects.dts_avro.cells import check_text
from translator.dialects.dts_avro.record import (
    BINARY_GEOMETRY,
    BINARY_OBJECT,
    CHARACTER,
    DATE_TIME,
    DECIMAL,
    FLOAT,
    INTEGER,
    NULL,
    TEXT_GEOMETRY,
    TEXT_OBJECT,
    TIMESTAMP,
    TIMESTAMP_WITH_TIME_ZONE,
    Fields,
    Image,
)

# -- values as bytes: the usual spelling, in which no number is longer than it need be


def _length(number: int) -> bytes:
    """A length as Avro writes it: zigzag doubles it, seven bits go into each byte."""
    number *= 2
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _sized(one: bytes, longest: int) -> bytes:
    """A text of up to so many bytes, each of them `one`, behind its length: for each length a pattern of its own."""
    return b"(?:" + b"|".join(re.escape(_length(size)) + one + b"{%d}" % size for size in range(longest + 1)) + b")"


_ASCII = rb"[\0-\x7f]"
_SMALL = _ASCII
"""A number in one byte."""
_INT = rb"[\x80-\xff]{0,3}[\0-\x7f]"
_LONG = rb"[\x80-\xff]{0,7}[\0-\x7f]"
_TEXT = _sized(b".", 255)
_DIGITS = _sized(_ASCII, 40)
_NAME = _sized(_ASCII, 20)
_CHARSET = rb"(?:\x0eutf8mb4|" + _NAME + rb")"

_YEAR = rb"\x02[\x80-\xff]" + _SMALL
_DAY = (rb"\x02" + _SMALL) * 2
_CLOCK = (rb"\x02" + _SMALL) * 3 + rb"(?:\0|\x02" + _INT + rb")"
_DATE_TIME = rb"(?:" + _YEAR + rb"(?:" + _DAY + rb"(?:" + _CLOCK + rb"|\0{4})|\0{6})|\0{3}" + _CLOCK + rb")"
"""With the components of a date, a time, both, or a year alone."""

_PATTERNS: Mapping[int, bytes] = {
    NULL: b"",
    INTEGER: _SMALL + _DIGITS,
    CHARACTER: _CHARSET + _TEXT,
    DECIMAL: _DIGITS + _SMALL + _SMALL,
    FLOAT: b".{8}" + _SMALL + _SMALL,
    TIMESTAMP: _LONG + _INT,
    DATE_TIME: _DATE_TIME,
    TIMESTAMP_WITH_TIME_ZONE: _DATE_TIME + _NAME,
    BINARY_GEOMETRY: _NAME + _TEXT,
    TEXT_GEOMETRY: _NAME + _TEXT,
    BINARY_OBJECT: _NAME + _TEXT,
    TEXT_OBJECT: _NAME + _TEXT,
}
"""The payload of each branch. Strings are ASCII, but for those that `_LATER` names."""

_LATER = frozenset({TEXT_GEOMETRY, TEXT_OBJECT})
"""Branches with a string of any bytes, which must be UTF-8: asked when the image is found."""

_MAX_COLUMNS = 256
"""Compiling takes half a millisecond a column."""

AFTER = 16
"""Images of a table before a pattern is made of them: most tables of a large source are quiet."""

_MAX_COMPILED = 4
_MIN_TRIES = 64


class Table:
    """A table as its records showed it so far."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._branches: list[set[int]] = [{NULL} for _ in fields.columns]
        self._texts: Sequence[int] = ()
        self._match: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        self._compiled = self._images = self._tries = self._found = 0

    def image(self, data: bytes, at: int) -> tuple[Image, int] | None:
        """The values of the image that begins there, and where it ends; None when it must be read plainly.

        Raises:
            UnicodeDecodeError: a string is not UTF-8.
        """
        if self._match is None:
            return None
        self._tries += 1
        found = self._match(data, at)
        if found is None:
            if self._tries >= _MIN_TRIES and self._found * 2 < self._tries:  # long texts, perhaps: no use in trying
                self._match, self._compiled = None, _MAX_COMPILED
            return None
        self._found += 1
        cells: Image = list(found.groups())
        for index in self._texts:
            if not cells[index].isascii():
                check_text(cells[index])
        return cells, found.end()

    def learn(self, cells: Image) -> None:
        """Takes in how an image is made that was read plainly."""
        if self._compiled == _MAX_COMPILED or len(cells) != len(self._branches) or len(cells) > _MAX_COLUMNS:
            return
        self._images += 1
        new = False
        for seen, cell in zip(self._branches, cells, strict=True):
            if cell[0] not in seen and cell[0] in _PATTERNS:
                seen.add(cell[0])
                new = True
        if self._images >= AFTER and (new or self._match is None):
            self._compile()

    def _compile(self) -> None:
        """The whole image: the index of the union, one block of all columns, and its end."""
        self._compiled += 1
        cells = [_one_of(sorted(seen)) for seen in self._branches]
        pattern = re.escape(b"\x04" + _length(len(cells))) + b"".join(cells) + rb"\0"
        self._match = re.compile(pattern, re.DOTALL).match
        self._texts = [index for index, seen in enumerate(self._branches) if seen & _LATER]


def _one_of(branches: Sequence[int]) -> bytes:
    """A cell of one of these branches."""
    return b"(" + b"|".join(re.escape(bytes([branch])) + _PATTERNS[branch] for branch in branches) + b")"
