"""Integers, decimals and floats: exact, or an issue."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from translator.values.scalar import Unrepresentable, ascii_of

MAX_EXPONENT = 2_000
"""Decimals with more than 2 000 digits before or after the point are not written in plain form
(docs/design.md §4.2).
"""

MAX_ZEROS = 400
"""Maximum number of zeros that a decimal's plain form may have in addition to its text. This is enough for every double
(5e-324).

Otherwise, six bytes such as `1e1999` would expand to 2 000 bytes, and a message of one megabyte could fill the memory.
"""

_WIDEST = 10 ** (MAX_EXPONENT + 1)

INTEGER_BOUNDS: Mapping[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}

SMALLEST_NORMAL_SINGLE = 2.0**-126
LARGEST_SINGLE = 2.0**128 - 2.0**104
"""The range in which single-precision floats have full precision."""

_DIGITS = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
SPECIAL_FLOATS = {
    "nan": "NaN",
    "inf": "Infinity",
    "infinity": "Infinity",
    "+inf": "Infinity",
    "+infinity": "Infinity",
    "-inf": "-Infinity",
    "-infinity": "-Infinity",
}


def _integer(value: object) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        if not value.is_finite() or value != value.to_integral_value():
            raise Unrepresentable("NOT_AN_INTEGER", value)
        if value.adjusted() > MAX_EXPONENT:
            raise Unrepresentable("OUT_OF_RANGE", value)
        return int(value)
    text = ascii_of(value)
    if not _DIGITS.match(text):
        raise Unrepresentable("NOT_AN_INTEGER", value)
    if len(text) > MAX_EXPONENT:  # int() rejects very long texts
        raise Unrepresentable("OUT_OF_RANGE", value)
    return int(text)


def to_bounded_integer(low: int, high: int, value: object) -> int:
    number = _integer(value)
    if not low <= number <= high:
        raise Unrepresentable("OUT_OF_RANGE", value)
    return number


def to_uint64(value: object) -> str:
    return str(to_bounded_integer(*INTEGER_BOUNDS["uint64"], value))


def _decimal_of(value: object) -> Decimal:
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, int):
        number = Decimal(value)
    else:
        text = ascii_of(value).strip()
        if not _NUMBER.match(text):
            raise Unrepresentable("NOT_A_NUMBER", value)
        try:
            number = Decimal(text)
        except InvalidOperation:  # matches the pattern, but the exponent has more digits than Decimal supports
            raise Unrepresentable("EXPONENT_OUT_OF_RANGE", value) from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):  # only NaN and the infinities contain a letter
        raise Unrepresentable("NOT_A_NUMBER", value)
    first = number.adjusted()
    if abs(exponent) > MAX_EXPONENT or abs(first) > MAX_EXPONENT or _zeros(value, number, exponent) > MAX_ZEROS:
        raise Unrepresentable("EXPONENT_OUT_OF_RANGE", value)
    return number


def _zeros(value: object, number: Decimal, exponent: int) -> int:
    """Return how many digits the plain form has in addition to those that were sent."""
    if -MAX_ZEROS <= exponent <= MAX_ZEROS or (exponent > 0 and not number):  # 0E9 is 0
        return 0
    sent = _sent_digits(value) if isinstance(value, str) else len(number.as_tuple().digits)
    return max(number.adjusted() + 1, 1) + max(-exponent, 0) - sent


def _sent_digits(text: str) -> int:
    return sum(map(str.isdecimal, text.lower().partition("e")[0]))


def _plain(number: Decimal) -> str:
    """Return decimal text without an exponent. Negative zero loses its sign, because no database stores it."""
    text = format(number, "f")
    return text[1:] if text.startswith("-") and not number else text


def to_decimal(value: object) -> str:
    """Return a decimal that has no declared scale: digits as sent, with positive exponents written out."""
    if type(value) is int and -_WIDEST < value < _WIDEST:
        return str(value)
    return _plain(_decimal_of(value))


def to_scaled_decimal(precision: int, scale: int, value: object) -> str:
    """Return a decimal(p,s) with exactly `scale` fraction digits. Digits that do not fit are an issue. They are never
    rounded.
    """
    whole, _, fraction = _plain(_decimal_of(value)).partition(".")
    digits = whole + fraction.ljust(scale, "0")
    end = max(
        len(whole) + scale, 0
    )  # counts the digits that the type keeps (with a negative scale, they end before the point)
    if digits[end:].strip("0"):
        raise Unrepresentable("SCALE_EXCEEDED", value)
    if len(digits[:end].lstrip("-0")) > precision:
        raise Unrepresentable("PRECISION_EXCEEDED", value)
    return f"{whole}.{digits[len(whole) : end]}" if scale > 0 else whole


def to_float64(value: object) -> float | str:
    if isinstance(value, (str, Decimal)):
        return _float_of_text(str(value).strip().lower(), value)
    if not isinstance(value, (int, float)):
        raise Unrepresentable("NOT_A_NUMBER", value)
    try:
        number = float(value)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None
    return number if math.isfinite(number) else SPECIAL_FLOATS[str(number)]


def _float_of_text(text: str, raw: object) -> float | str:
    special = SPECIAL_FLOATS.get(text)
    if special is not None:
        return special
    if not _NUMBER.match(text):
        raise Unrepresentable("NOT_A_NUMBER", raw)
    number = float(text)
    vanished = not number and text.partition("e")[0].strip("+-.0")
    if vanished or math.isinf(number):
        raise Unrepresentable("OUT_OF_RANGE", raw)
    return number


def to_float32(value: object) -> float | str:
    """Return the single-precision number with the fewest digits that identify it: 1.1 for 1.100000023841858."""
    number = to_float64(value)
    if isinstance(number, str):
        return number
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None
    (single,) = struct.unpack("<f", packed)
    if number and not single:
        raise Unrepresentable("OUT_OF_RANGE", value)
    # Six digits are enough for every shorter decimal, too. The exception is subnormals, which have less precision.
    for digits in range(6 if abs(single) >= SMALLEST_NORMAL_SINGLE else 1, 9):
        short = float(f"{single:.{digits}g}")
        if struct.pack("<f", short) == packed:
            return short
    return float(f"{single:.9g}")
