"""Values as Avro's logical types carry them: counts of days or of fractions of a second, and unscaled decimals.

What they give is the canonical text, or text that the converter of another type can read on.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from translator.values.numbers import MAX_EXPONENT
from translator.values.scalar import Converter, Unrepresentable

_DAY_ZERO = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_SECONDS_A_DAY = 86_400

_WIDEST_DECIMAL = MAX_EXPONENT * 10 // 24
"""Bytes; 2.4 decimal digits fit one. Beyond it no plain decimal is written (docs/design.md §4.2)."""


def _count(value: object) -> int:
    if type(value) is not int:  # a bool is none
        raise Unrepresentable("NOT_AN_INTEGER", value)
    return value


def date_of_days(value: object) -> str:
    """Days since 1970-01-01."""
    days = _count(value)
    try:
        return date.fromordinal(_DAY_ZERO + days).isoformat()
    except (ValueError, OverflowError):
        raise Unrepresentable("OUT_OF_RANGE", value) from None


def clock_of(digits: int) -> Converter:
    """A time of day, counted in units of 10^-digits seconds since midnight; no fraction where it is zero."""
    unit = 10**digits

    def convert(value: object) -> str:
        seconds, fraction = divmod(_count(value), unit)
        if not 0 <= seconds < _SECONDS_A_DAY:
            raise Unrepresentable("INVALID_TIME", value)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{clock}.{fraction:0{digits}d}" if fraction else clock

    return convert


def local_of(digits: int) -> Converter:
    """A local timestamp, counted in units of 10^-digits seconds since 1970; no fraction where it is zero."""
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
    """Format a local time of microseconds: the unit that Python has, one step less than the general way."""
    try:
        return (_EPOCH + timedelta(0, 0, _count(value))).isoformat()
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None


def unscaled_decimal(precision: int, scale: int) -> Converter:
    """A decimal(p,s) out of the two's complement bytes of its digits, big-endian; precision 0 is any."""

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
