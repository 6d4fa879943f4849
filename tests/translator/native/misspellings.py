"""Messages with one string spelled so that a parser may reject it, for each of their strings in turn."""

import re
from collections.abc import Iterator
from random import Random

ESCAPES = (rb"\x", rb"\q", rb"\u12", rb"\uZZZZ", rb"\u00", rb"\/", rb"\u0041", rb"\u0000")
SURROGATES = (rb"\ud800", rb"\udc00", rb"\ude00\ud83d", rb"\ud83d\ude00", rb"\ud800\u0041")
BYTES = (b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00", b"\n", b"\x7f")
BAD = (*ESCAPES, *SURROGATES, *BYTES)
"""Spellings that are not JSON, valid ones that no writer here uses, and bytes that are not UTF-8."""

_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PRINTABLE = re.compile(rb"[\x20-\x7e]+")


def in_json(value: bytes) -> Iterator[bytes]:
    """Misspell each string of a JSON message, including member names, at its beginning and at its end."""
    for found in _JSON.finditer(value):
        for at in dict.fromkeys((found.start() + 1, found.end() - 1)):
            for bad in BAD:
                yield value[:at] + bad + value[at:]


def one_in_json(chance: Random, value: bytes) -> bytes:
    """Misspell one string of a JSON message."""
    places = [found.end() - 1 for found in _JSON.finditer(value)]
    if not places:
        return value
    at = chance.choice(places)
    return value[:at] + chance.choice(BAD) + value[at:]


def in_avro(value: bytes) -> Iterator[bytes]:
    """Misspell each string of an Avro record of up to 63 bytes, whose length is the byte before it."""
    for at, length in _strings(value):
        yield from _misspelled(value, at, length)


def one_in_avro(chance: Random, value: bytes) -> bytes:
    """Misspell one string of an Avro record."""
    strings = [*_strings(value)]
    return chance.choice([*_misspelled(value, *chance.choice(strings))]) if strings else value


def _strings(value: bytes) -> Iterator[tuple[int, int]]:
    """Return the index and the length of each string."""
    for at in range(len(value)):
        length, start = value[at] // 2, at + 1
        if value[at] % 2 == 0 and 0 < length < 64 and _PRINTABLE.fullmatch(value[start : start + length]):
            yield at, length


def _misspelled(value: bytes, at: int, length: int) -> Iterator[bytes]:
    start = at + 1
    for bad in BAD:
        if length + len(bad) < 64:
            longer = bytes([2 * (length + len(bad))])
            yield value[:at] + longer + value[start : start + length] + bad + value[start + length :]
        if len(bad) <= length:
            yield value[: start + length - len(bad)] + bad + value[start + length :]
