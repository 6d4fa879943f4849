"""Regular expressions for an image's values in their usual spelling, with numbers of minimal length.

A match gives the same result as the plain reader (`cells`), and other spellings do not match. Matching all values in an
image takes as long as two values take in a Python loop.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

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
    Cell,
)


def _length(number: int) -> bytes:
    """Return a length in Avro: zigzag doubles the number, and each byte holds seven bits."""
    number *= 2
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _sized(one: bytes, longest: int) -> bytes:
    """Return a pattern for a length and its text, with up to `longest` bytes that match `one`. Each length is an
    alternative of its own.
    """
    return b"(?:" + b"|".join(re.escape(_length(size)) + one + b"{%d}" % size for size in range(longest + 1)) + b")"


OTHER_CHARSET = CHARACTER + 1
"""Used instead of CHARACTER for a charset that is not UTF-8 under one of its common names."""

_ASCII = rb"[\0-\x7f]"
_SMALL = _ASCII
"""A number in one byte."""
_INT = rb"[\x80-\xff]{0,3}[\0-\x7f]"
_LONG = rb"[\x80-\xff]{0,7}[\0-\x7f]"
_TEXT = _sized(b".", 255)
_DIGITS = _sized(_ASCII, 40)
_NAME = _sized(_ASCII, 20)
_UTF8 = rb"(?:\x0eutf8mb4|\x08utf8|\x08UTF8|\x10AL32UTF8|\x0autf-8|\x0aUTF-8)"

_YEAR = rb"\x02[\x80-\xff]" + _SMALL
_DAY = (rb"\x02" + _SMALL) * 2
_CLOCK = (rb"\x02" + _SMALL) * 3 + rb"(?:\0|\x02" + _INT + rb")"
_DATE_TIME = rb"(?:" + _YEAR + rb"(?:" + _DAY + rb"(?:" + _CLOCK + rb"|\0{4})|\0{6})|\0{3}" + _CLOCK + rb")"
"""A DateTime with the components of a date, a time, both, or only a year."""

_PAYLOADS: Mapping[int, bytes] = {
    INTEGER: _SMALL + _DIGITS,
    CHARACTER: _UTF8 + _TEXT,
    OTHER_CHARSET: _NAME + _TEXT,
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
"""Each branch's payload. Strings are ASCII, except for those in `UNCHECKED`."""

UNCHECKED = frozenset({TEXT_GEOMETRY, TEXT_OBJECT})
"""Branches whose string can contain any bytes. A match does not prove that the string is UTF-8."""


# -- a record's fields before its tags

_WORD = rb"([\0-\x3e])"
_SHORT = _sized(_ASCII, 63)
HEAD = re.compile(
    rb"(" + _INT + rb")(" + _LONG + rb")(" + _LONG + rb")"  # version, id, sourceTimestamp
    rb"("
    + _SHORT
    + rb")("
    + _SHORT
    + rb")("
    + _SHORT
    + rb")"  # positions, sourceTxid
    + _WORD
    + rb"("
    + _SHORT
    + rb")"
    + _WORD  # source, operation
    + rb"(?:\0|\x02("
    + _TEXT
    + rb"))\0",  # objectName, without processTimestamps
    re.DOTALL,
).match
"""The fields from `version` to `processTimestamps`, which is null, with a group for each other field. All fields except
the name are ASCII.
"""


# -- a cell's bare value, if all cells in a column have the same branch


def _exactly(texts: Sequence[tuple[int, bytes]], behind: bytes) -> bytes:
    """Return a look-ahead that checks the stated length of a text, because the text's own pattern matches as long as
    its characters continue.
    """
    return b"(?=" + b"|".join(re.escape(_length(size)) + text + behind for size, text in texts) + b")"


def _up_to(longest: int, characters: bytes) -> list[tuple[int, bytes]]:
    return [(size, characters + b"{%d}" % size) for size in range(1, longest + 1)]


_NEXT_CELL = rb"[\0-\x18]"
_PRECISION = rb"[\0-\x2c]"
"""A byte for a precision: never a character in a number, and up to the maximum of every database."""

_NINETEEN = rb"(?:[1-8][0-9]|9[01])[0-9]{17}"
_SIXTY_FOUR_BITS = [*_up_to(18, rb"[-0-9]"), (19, _NINETEEN), (19, rb"-[0-9]{18}"), (20, rb"-" + _NINETEEN)]
"""All 64-bit integers except the last few."""

BARE: Mapping[int, bytes] = {
    INTEGER: _SMALL + _exactly(_SIXTY_FOUR_BITS, _NEXT_CELL) + rb".(0|-?[1-9][0-9]*)",
    DECIMAL: _exactly(_up_to(40, rb"[-.0-9]"), _PRECISION)
    + rb".((?:-(?=[0-9.]*[1-9]))?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)"
    + _PRECISION
    + _SMALL,
    CHARACTER: _UTF8 + b"(" + _TEXT + b")",
}
"""The payload with one group: a 64-bit integer, or a decimal without exponent, both without unnecessary zeros and
without negative zero; or UTF-8 text with its length.
"""

_NOTHING = b"((?!))?"

MANY = -1
"""Used instead of a branch if a column has several."""


def branch_of(cell: Cell) -> int:
    """Return the branch, or OTHER_CHARSET."""
    return OTHER_CHARSET if cell[0] == CHARACTER and not _is_utf8(cell) else cell[0]


_is_utf8 = re.compile(b"\x04" + _UTF8).match


def known(branch: int) -> bool:
    """Return whether the branch has a pattern."""
    return branch == NULL or branch in _PAYLOADS


def image_pattern(columns: Collection[Collection[int]]) -> tuple[bytes, tuple[int, ...]]:
    """Return the pattern for an image whose cells are null or have these branches: the union index, one block, and the
    end.

    The pattern has two groups per column: the cell and its content, which is None for null. The content is the bare
    value if the column's only branch supports bare values (`BARE`), and otherwise the cell again. Also returns each
    column's only branch, or MANY.
    """
    cells = [_column(sorted(set(branches) - {NULL})) for branches in columns]
    pattern = re.escape(b"\x04" + _length(len(cells))) + b"".join(cell for cell, _ in cells) + rb"\0"
    return pattern, tuple(kind for _, kind in cells)


def _column(branches: list[int]) -> tuple[bytes, int]:
    if not branches:
        return rb"(\0)" + _NOTHING, NULL
    if len(branches) > 1:
        return rb"(\0|(" + b"|".join(map(_cell, branches)) + b"))", MANY
    (branch,) = branches
    if branch in BARE:
        return rb"(\0|" + _first(branch) + BARE[branch] + b")", branch
    return rb"(\0|(" + _cell(branch) + b"))", branch


def _cell(branch: int) -> bytes:
    return _first(branch) + _PAYLOADS[branch]


def _first(branch: int) -> bytes:
    return re.escape(bytes([CHARACTER if branch == OTHER_CHARSET else branch]))
