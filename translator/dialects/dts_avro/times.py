"""Convert DateTime, TimestampWithTimeZone and Timestamp to text (§4.4).

A null component means "not applicable" rather than zero, so the components that are present show the kind of value.
`millis` never contains milliseconds. It is micros in a Timestamp, and micros or nanos (`digits` 6 or 9) in a DateTime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, TypeAlias

from translator.values import Unrepresentable, clock_text, date_text, utc_text, zone

Parts: TypeAlias = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_HOURS = 838
_UNITS = {6: "micros", 9: "nanos"}
_COMPONENTS = ("year", "month", "day", "hour", "minute", "second", "millis")


def timestamp_text(value: Parts, digits: int, *, zero_is_no_date: bool) -> str:
    """Return seconds and micros since 1970 as UTC text.

    `zero_is_no_date`: MySQL's TIMESTAMP starts one second after the epoch, so 0 represents `0000-00-00 00:00:00`.
    """
    seconds = value["timestamp"]
    raw = f"{seconds} s {value['millis']} {_UNITS[digits]}"
    if zero_is_no_date and seconds == 0:
        raise Unrepresentable("ZERO_DATE", raw)
    fraction = _fraction(value["millis"], digits, raw)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", raw) from None
    return moment.isoformat()[:19] + (f".{fraction}" if fraction else "") + "Z"


def natural_text(parts: Parts, digits: int) -> str:
    """Return the components as text without checking the calendar, so that `0000-00-00` is preserved."""
    shape = _shape(parts)
    if shape is None:
        raise Unrepresentable("INVALID_DATETIME", _components(parts))
    return _NATURAL[shape](parts, digits)


def date_of(parts: Parts, digits: int) -> str:
    """Read a date. If a time is included, it must be midnight."""
    shape, raw = _shape(parts), _Raw(parts, digits)
    midnight = shape == "datetime" and not any(parts[name] for name in _COMPONENTS[3:])
    if shape != "date" and not midnight:
        raise Unrepresentable("INVALID_DATE", raw)
    return date_text(parts["year"], parts["month"], parts["day"], raw)


def time_of(parts: Parts, digits: int) -> str:
    """Read a time of day, or a MySQL TIME of up to 838 hours in either direction, in which every component has the
    sign.
    """
    if _shape(parts) != "time":
        raise Unrepresentable("INVALID_TIME", _Raw(parts, digits))
    if abs(parts["hour"]) > _MAX_HOURS or abs(parts["minute"]) > 59 or abs(parts["second"]) > 59:
        raise Unrepresentable("INVALID_TIME", _Raw(parts, digits))
    return _time(parts, digits)


def local_of(parts: Parts, digits: int) -> str:
    """Read a local timestamp. A date alone is not extended with zeros."""
    raw = _Raw(parts, digits)
    if _shape(parts) != "datetime":
        raise Unrepresentable("INVALID_TIMESTAMP", raw)
    fraction = _fraction(parts["millis"], digits, raw)
    day = date_text(parts["year"], parts["month"], parts["day"], raw)
    return f"{day}T{clock_text(parts['hour'], parts['minute'], parts['second'], fraction, raw)}"


def interval_of(parts: Parts, digits: int) -> str:
    """Read one of Oracle's intervals: `[-]Y-MM` or `[-]D HH:MM:SS[.f...]`."""
    if _shape(parts) not in ("year_month", "day_second"):
        raise Unrepresentable("INVALID_INTERVAL", _Raw(parts, digits))
    return natural_text(parts, digits)


def zoned_text(value: Parts, digits: int) -> str:
    """Return the local text with the zone as sent, for values that no canonical type can hold."""
    return f"{natural_text(value['value'], digits)}{value['timezone']}"


def utc_of(value: Parts, digits: int) -> str:
    """Return a timestamp in UTC."""
    parts, name = value["value"], value["timezone"]
    raw = _Raw(parts, digits, name)
    if _shape(parts) != "datetime":
        raise Unrepresentable("INVALID_TIMESTAMP", raw)
    try:
        found = zone_of(name)
    except ValueError:
        raise Unrepresentable("UNKNOWN_ZONE", raw) from None
    day = date_text(parts["year"], parts["month"], parts["day"], raw)
    clock = clock_text(parts["hour"], parts["minute"], parts["second"], "", raw)
    moment = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=found)
    return utc_text(moment, _fraction(parts["millis"], digits, raw), raw)


# -- the components that are present

_SHAPES: Mapping[tuple[bool, ...], str] = {
    # year month day hour minute second; the fraction belongs to the second
    (True, True, True, False, False, False): "date",
    (True, True, True, True, True, True): "datetime",
    (False, False, False, True, True, True): "time",
    (True, False, False, False, False, False): "year",
    (True, True, False, False, False, False): "year_month",
    (False, False, True, True, True, True): "day_second",
}
_SIGNED_SHAPES = frozenset({"time", "year_month", "day_second"})


def _shape(parts: Parts) -> str | None:
    """Return which components are present, or None if they do not form a value or have different signs."""
    shape = _SHAPES.get(
        (
            parts["year"] is not None,
            parts["month"] is not None,
            parts["day"] is not None,
            parts["hour"] is not None,
            parts["minute"] is not None,
            parts["second"] is not None,
        )
    )
    if parts["millis"] and parts["second"] is None:
        return None
    if shape in _SIGNED_SHAPES and len({value > 0 for value in parts.values() if value}) > 1:
        return None
    return shape


def _date(parts: Parts, digits: int) -> str:
    if parts["month"] < 0 or parts["day"] < 0:
        raise Unrepresentable("INVALID_DATETIME", _components(parts))
    sign = "-" if parts["year"] < 0 else ""
    return f"{sign}{abs(parts['year']):04d}-{parts['month']:02d}-{parts['day']:02d}"


def _time(parts: Parts, digits: int) -> str:
    hour, minute, second, fraction = parts["hour"], parts["minute"], parts["second"], parts["millis"] or 0
    sign = "-" if hour < 0 or minute < 0 or second < 0 or fraction < 0 else ""
    tail = _fraction(abs(fraction), digits, _Raw(parts))
    return f"{sign}{abs(hour):02d}:{abs(minute):02d}:{abs(second):02d}" + (f".{tail}" if tail else "")


def _datetime(parts: Parts, digits: int) -> str:
    clock = _time(parts, digits)
    if clock.startswith("-"):
        raise Unrepresentable("INVALID_DATETIME", _components(parts))
    return f"{_date(parts, digits)}T{clock}"


def _year(parts: Parts, digits: int) -> str:
    return str(parts["year"])


def _year_month(parts: Parts, digits: int) -> str:
    sign = "-" if parts["year"] < 0 or parts["month"] < 0 else ""
    return f"{sign}{abs(parts['year'])}-{abs(parts['month']):02d}"


def _day_second(parts: Parts, digits: int) -> str:
    clock = _time(parts, digits)
    sign = "-" if parts["day"] < 0 or clock.startswith("-") else ""
    return f"{sign}{abs(parts['day'])} {clock.removeprefix('-')}"


_NATURAL: Mapping[str, Callable[[Parts, int], str]] = {
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "year": _year,
    "year_month": _year_month,
    "day_second": _day_second,
}


def _fraction(value: int | None, digits: int, raw: object) -> str:
    """Return the digits after the decimal point. Zero gives no digits, because writers also send it for columns without
    a fraction.
    """
    if not value:
        return ""
    if not 0 < value < 10**digits:
        raise Unrepresentable("FRACTION_OUT_OF_RANGE", raw)
    return str(value).rjust(digits, "0")


class _Raw:
    """Return an issue's raw text, computed only when needed: natural text if the components can be written as such."""

    __slots__ = ("digits", "parts", "zone")

    def __init__(self, parts: Parts, digits: int | None = None, zone: str = "") -> None:
        self.parts, self.digits, self.zone = parts, digits, zone

    def __str__(self) -> str:
        if self.digits is None:
            return _components(self.parts)
        try:
            return natural_text(self.parts, self.digits) + self.zone
        except Unrepresentable:
            return _components(self.parts) + self.zone


def _components(parts: Parts) -> str:
    """Return all components from year to fraction, with `-` for each absent component."""
    return " ".join("-" if parts[name] is None else str(parts[name]) for name in _COMPONENTS)


# -- zones

_OFFSET = re.compile(r"(?:GMT|UTC)?([+-]?)(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?\Z", re.ASCII)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """Return a zone in any format that the vendor's code accepts: `GMT+8`, `UTC-03:30`, `+08:00`, `8`, a region.

    Raises:
        ValueError: the zone does not exist.
    """
    match = _OFFSET.match(name)
    if match is None:
        return UTC if name == "GMT" else zone(name)
    sign, hours, minutes, seconds = match.groups()
    if int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise ValueError(name)
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    return timezone(-offset if sign == "-" else offset)
