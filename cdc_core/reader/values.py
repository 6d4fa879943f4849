"""Convert the values in images to Python values, based on their canonical types (docs/envelope/values.md). If Python
cannot represent a value exactly, it is returned as text.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | timedelta | None
"""A time of day is a timedelta since midnight, which may be negative or exceed 24 hours."""


class ExactText(str):
    """A time with more than microsecond precision, which no Python type supports. The value is the canonical text
    without trailing zeros.
    """

    __slots__ = ()


def python_value(canonical: str, value: Any) -> Value:
    """Return the Python value for a column value and its canonical type. Values with unknown types are returned
    unchanged.

    Raises:
        ValueError: the value's format does not match its type. The message contains no value.
    """
    if value is None:
        return None
    convert = _BY_TYPE.get(canonical.partition("(")[0])
    if convert is None:
        return plain_value(value)
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError):
        raise ValueError(f"not in the form of {canonical}") from None


def plain_value(value: Any) -> Value:
    """Return the value from a column that has no declared type.

    Raises:
        ValueError: a list or an object, which images never contain.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a list or an object")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def _integer(value: Any) -> int:
    """Also accept text: `uint64` values are text, and so are numbers in events without a schema."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if type(value) is not int:
        raise TypeError
    return value


def _decimal(value: Any) -> Decimal:
    if type(value) is int:
        return Decimal(value)
    if not _NUMBER.fullmatch(value):
        raise ValueError
    return Decimal(value)


_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def _float(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if value in _NOT_FINITE else float(_decimal(value))
    if type(value) not in (int, float):
        raise TypeError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bytes(value: Any) -> bytes:
    return binascii.a2b_base64(value, strict_mode=True)


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = r"([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
_TIMESTAMP = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T){_CLOCK}(Z?)")
_TIME = re.compile(r"(-?)([0-9]{2,}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,9}))?")


def _date(value: Any) -> date:
    if not _DATE.fullmatch(value):
        raise ValueError
    return date.fromisoformat(value)


def _moment(value: Any, zone: str) -> datetime | ExactText:
    found = _TIMESTAMP.fullmatch(value)
    if found is None or found[4] != zone:
        raise ValueError
    fraction = (found[3] or "").rstrip("0")
    whole = datetime.fromisoformat(found[1] + found[2])
    if len(fraction) > _MICRO_DIGITS:
        return ExactText(f"{found[1]}{found[2]}.{fraction}{zone}")
    return whole.replace(microsecond=_micros(fraction), tzinfo=UTC if zone else None)


def _local(value: Any) -> datetime | ExactText:
    return _moment(value, "")


def _instant(value: Any) -> datetime | ExactText:
    return _moment(value, "Z")


def _time(value: Any) -> timedelta | ExactText:
    found = _TIME.fullmatch(value)
    if found is None:
        raise ValueError
    sign, hours, minutes, seconds, digits = found.groups()
    fraction = (digits or "").rstrip("0")
    if len(fraction) > _MICRO_DIGITS:
        return ExactText(f"{sign}{hours}:{minutes}:{seconds}.{fraction}")
    clock = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=_micros(fraction))
    return -clock if sign else clock


_MICRO_DIGITS = 6


def _micros(fraction: str) -> int:
    return int(fraction.ljust(_MICRO_DIGITS, "0"))


_BY_TYPE: Mapping[str, Callable[[Any], Value]] = {
    "boolean": _boolean,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _integer),
    "decimal": _decimal,
    "float32": _float,
    "float64": _float,
    **dict.fromkeys(("string", "interval", "uuid", "json", "enum", "set"), _text),
    "bytes": _bytes,
    "geometry": _bytes,
    "date": _date,
    "time": _time,
    "timestamp": _local,
    "timestamptz": _instant,
}


def canonical_text(value: Value) -> Any:
    """Return numbers, strings, bytes and NULL unchanged, as SQLite accepts them. Return any other value as its
    canonical text.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _SPELLED[str(value)]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _clock(value)
    return str(value) if isinstance(value, str) else value


_SPELLED = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _clock(value: timedelta) -> str:
    """Format a time of day as in images. It may have a sign, and more than 24 hours."""
    sign, rest = ("-", -value) if value < timedelta() else ("", value)
    seconds, micros = rest.days * 86_400 + rest.seconds, rest.microseconds
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
