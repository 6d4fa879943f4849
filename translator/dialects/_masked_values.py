"""Replace row values with other values in the same format, for copies of messages that may leave the company.

A masked value parses like the original. A date stays a date. A number keeps its sign, scale and number of digits, and
its absolute value never increases. Letters stay letters with the same number of bytes. Equal values get equal masks, so
a change remains a change. NULL, booleans, 0, 1, empty strings, time zones and punctuation are not changed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

_KEPT_WORDS = frozenset({"", *("true", "false", "t", "f"), *("null", "nan", "inf", "-inf", "infinity", "-infinity")})
_NUMBER = re.compile(r"([+-]?)(\d*)(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_DATE = r"(?P<year>\d{4})(?P<separator>[-/.])(?P<month>\d\d)(?P=separator)(?P<day>\d\d)"
_TIME = r"(?P<hour>\d{2,3}):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?P<fraction>\.\d+)?"
_TIMES = re.compile(f"{_DATE}|(?<![:+\\d-]){_TIME}", re.ASCII)
_HAS_TIME = re.compile(r"-?(\d{4}([-/.])\d\d\2\d\d([ T:].*)?|\d{2,3}:\d\d(:\d\d)?([^\d:].*)?)", re.ASCII)
_HEX_BYTES = re.compile(r"(?:[0-9A-F]{2})+", re.ASCII)
"""Bytes as Qlik Replicate writes them. A word that consists of the capitals A to F is masked in the same way."""

_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F{}-]{8,}", re.ASCII)

_DIGITS = 1000
"""Maximum number of digits that are masked together. Longer numbers are masked in parts, because Python does not
convert more than 4300 digits.
"""

_LETTERS: Mapping[int, str] = {2: "àçéñöüß", 3: "一二三四五六七", 4: "𠀀𠀁𠀂𠀃"}
"""Letters by their size in UTF-8."""


class MaskedValues:
    """The masks for one copy. Equal values are masked equally, but another key masks them differently.

    Args:
        key: up to 64 secret bytes. Anyone who knows the key can guess values by trial.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def text(self, text: str) -> str:
        """Return a similar string with the same number of characters, except for powers of ten."""
        if text.lower() in _KEPT_WORDS:
            return text
        if _NUMBER.fullmatch(text):
            return self.number(text)
        chance = self._chance(text)
        if _HAS_TIME.fullmatch(text):
            return _moved(text, chance)
        return _spelled(text, chance, hexadecimal=_is_hex(text))

    def number(self, text: str) -> str:
        """Return a masked number as text. The sign, the scale and the number of digits stay the same, and the absolute
        value never increases.
        """
        found = _NUMBER.fullmatch(text)
        if found is None:
            return _spelled(text, self._chance(text), hexadecimal=False)
        sign, whole, fraction, exponent = (part or "" for part in found.groups())
        chance = self._chance(text)
        return sign + _below(whole, chance) + _fraction(fraction, chance) + exponent

    def bytes(self, data: bytes) -> bytes:
        """Return different bytes of the same length."""
        chance = self._chance(data.hex())
        return bytes(chance(256) for _ in data)

    def _chance(self, value: str) -> Callable[[int], int]:
        """Return numbers below a limit, determined by the value and the key."""
        stream = _stream(value.encode("utf-8", "surrogatepass"), self._key)
        return lambda bound: next(stream) % bound


def _stream(value: bytes, key: bytes) -> Iterator[int]:
    block = 0
    while True:
        digest = hashlib.blake2b(value, key=key, salt=block.to_bytes(8, "big")).digest()
        yield from (int.from_bytes(digest[at : at + 8], "big") for at in range(0, len(digest), 8))
        block += 1


def _below(digits: str, chance: Callable[[int], int]) -> str:
    """Return a number with the same number of digits that is not greater than the original. A power of ten becomes any
    smaller number.
    """
    if len(digits) > _DIGITS:
        head, tail = digits[:_DIGITS], digits[_DIGITS:]
        masked = _below(head, chance).zfill(len(head))
        return masked + (_below(tail, chance).zfill(len(tail)) if masked == head else _random(tail, chance))
    number = int(digits or 0)
    if number < 2:
        return digits
    least = 10 ** (len(str(number)) - 1)
    other = 1 + chance(number - 1) if number == least else least + chance(number - least)
    return str(other).zfill(len(digits) if digits.startswith("0") else 0)


def _random(digits: str, chance: Callable[[int], int]) -> str:
    return "".join(str(chance(10)) for _ in digits)


def _fraction(text: str, chance: Callable[[int], int]) -> str:
    if not text.strip(".0"):
        return text
    zeros = len(text) - len(text.rstrip("0"))
    places = len(text) - 1 - zeros
    return "." + "".join(str(chance(10)) for _ in range(places - 1)) + str(1 + chance(9)) + "0" * zeros


def _moved(text: str, chance: Callable[[int], int]) -> str:
    """Return another day and time of day. MySQL's zero date is not changed."""
    if text.startswith("0000"):
        return text

    def other(found: re.Match[str]) -> str:
        if found["year"] is not None:
            day = (f"20{chance(37):02}", f"{1 + chance(12):02}", f"{1 + chance(28):02}")
            return str(found["separator"]).join(day)
        hour, fraction = found["hour"], found["fraction"] or ""
        second = "" if found["second"] is None else f":{chance(60):02}"
        shown = f"{chance(min(int(hour), 23) + 1):0{len(hour)}}:{chance(60):02}{second}"
        return shown + _fraction(fraction, chance)

    return _TIMES.sub(other, text)


def _is_hex(text: str) -> bool:
    """Return whether a string is hex bytes, a hex number or a UUID, and not just a word with the letters A to F.

    All hex digits may happen to be letters. If other letters replaced them, the text would no longer stand for bytes.
    """
    if _HEX_BYTES.fullmatch(text) is not None:
        return True
    return _HEX.fullmatch(text) is not None and any(char.isdigit() for char in text)


def _spelled(text: str, chance: Callable[[int], int], *, hexadecimal: bool) -> str:
    letters = 6 if hexadecimal else 26
    prefix = text[:2] if hexadecimal and text[:2] in ("0x", "0X") else ""
    escaped, masked = False, []
    for char in text[len(prefix) :]:
        masked.append(char if escaped else _other(char, chance, letters))
        # Changing a letter could break a JSON escape after a backslash inside the text.
        escaped = char == "\\" and not escaped
    return prefix + "".join(masked)


def _other(char: str, chance: Callable[[int], int], letters: int) -> str:
    if char.isascii():
        if char.isdigit():
            return str(chance(10))
        if char.isalpha():
            return chr(ord("a" if char.islower() else "A") + chance(letters))
        return char
    if unicodedata.category(char)[0] in "CZ":  # spaces and invisible characters
        return char
    same = _LETTERS[len(char.encode("utf-8"))]
    return same[chance(len(same))]
