"""Convert values of Avro's logical types: counts of days or fractions of a second, and unscaled decimals.

The result is canonical text, or text that another type's converter accepts.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from translator.values.numbers import MAX_EXPONENT
from translator.values.scalar import Converter, Unrepresentable

_DAY_ZERO = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_SECONDS_A_DAY = 86_400

_WIDEST_DECIMAL = MAX_EXPONENT * 10 // 24
"""Maximum size of a decimal in bytes. A byte holds 2.4 digits. Longer decimals are not written (docs/design.md §4.2).
"""


def _count(value: object) -> int:
    if type(value) is not int:  # a bool does not count as an int
        raise Unrepresentable("NOT_AN_INTEGER", value)
    return value


def date_of_days(value: object) -> str:
    """Format days since 1970-01-01."""
    days = _count(value)
    try:
        return date.fromordinal(_DAY_ZERO + days).isoformat()
    except (ValueError, OverflowError):
        raise Unrepresentable("OUT_OF_RANGE", value) from None


def clock_of(digits: int) -> Converter:
    """Format a time of day, given in units of 10^-digits seconds since midnight. A zero fraction is omitted."""
    unit = 10**digits

    def convert(value: object) -> str:
        seconds, fraction = divmod(_count(value), unit)
        if not 0 <= seconds < _SECONDS_A_DAY:
            raise Unrepresentable("INVALID_TIME", value)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{clock}.{fraction:0{digits}d}" if fraction else clock

    return convert


def local_of(digits: int) -> Converter:
    """Format a local timestamp, given in units of 10^-digits seconds since 1970. A zero fraction is omitted."""
    unit = 10**digits
    if digits == _DIGITS_OF_PYTHON:
        return _local_of_micros

    def convert(value: object) -> str:
        seconds, fraction = divmod(_count(value), unit)
        try:
            text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
        except OverflowError:
            raise Unrepresentable("OUT_OF_RANGE", value) from None
        return f"{text}.{fraction:0{digits}d}" if fraction else text

    return convert


_DIGITS_OF_PYTHON = 6


def _local_of_micros(value: object) -> str:
    """Format a local time in microseconds. Python uses the same unit, which saves a step compared with the general
    function.
    """
    try:
        return (_EPOCH + timedelta(0, 0, _count(value))).isoformat()
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None


def unscaled_decimal(precision: int, scale: int) -> Converter:
    """Return a decimal(p,s) from its unscaled value in big-endian two's complement. Precision 0 means any precision."""

    def convert(value: object) -> str:
        if not isinstance(value, bytes) or not value:
            raise Unrepresentable("NOT_A_NUMBER", value)
        if len(value) > _WIDEST_DECIMAL:
            raise Unrepresentable("OUT_OF_RANGE", value)
        number = int.from_bytes(value, "big", signed=True)
        digits = str(abs(number))
        if precision and number and len(digits) > precision:
            raise Unrepresentable("PRECISION_EXCEEDED", value)
        sign = "-" if number < 0 else ""
        if scale > 0:
            digits = digits.rjust(scale + 1, "0")
            return f"{sign}{digits[:-scale]}.{digits[-scale:]}"
        return f"{sign}{digits}{'0' * -scale}" if number else "0"

    return convert
