"""Dates and times in their text forms; sources that send components build the text with the functions here."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache, partial
from importlib import resources
from zoneinfo import ZoneInfo

from translator.values.scalar import Converter, Unrepresentable, text_of

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?\s?(Z|UTC|[+-]\d{2}(?::?\d{2})?)?\Z", re.ASCII
)


def date_text(year: int, month: int, day: int, raw: object) -> str:
    """`YYYY-MM-DD`; a date that no calendar has (zero dates too) is an issue."""
    try:
        date(year, month, day)
    except ValueError:
        code = "ZERO_DATE" if 0 in (year, month, day) else "INVALID_DATE"
        raise Unrepresentable(code, raw) from None
    return f"{year:04d}-{month:02d}-{day:02d}"


def clock_text(hour: int, minute: int, second: int, fraction: str, raw: object) -> str:
    """`HH:MM:SS[.f...]` of a day; `fraction` is the digits as sent, at most 9."""
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        raise Unrepresentable("INVALID_TIME", raw)
    return f"{hour:02d}:{minute:02d}:{second:02d}" + (f".{fraction}" if fraction else "")


def to_date(value: object) -> str:
    match = _DATE.match(text_of(value))
    if match is None:
        # Oracle's DATE and some writers send midnight along
        stamp = _TIMESTAMP.match(text_of(value))
        if stamp is None or stamp[8] or any(int(part or 0) for part in stamp.group(4, 5, 6, 7)):
            raise Unrepresentable("INVALID_DATE", value)
        match = stamp
    return date_text(int(match[1]), int(match[2]), int(match[3]), value)


def to_time(value: object) -> str:
    """`[-]HH:MM:SS[.f...]`; MySQL's TIME runs to 838 hours either way."""
    match = _TIME.match(text_of(value))
    if match is None or int(match[3]) > 59 or int(match[4]) > 59:
        raise Unrepresentable("INVALID_TIME", value)
    sign, hours, minutes, seconds, fraction = match.groups()
    return f"{sign}{int(hours):02d}:{minutes}:{seconds}" + (f".{fraction}" if fraction else "")


def to_timestamp(value: object) -> str:
    match = _TIMESTAMP.match(text_of(value))
    if match is None:
        day = _DATE.match(text_of(value))
        if day is None:
            raise Unrepresentable("INVALID_TIMESTAMP", value)
        return date_text(int(day[1]), int(day[2]), int(day[3]), value) + "T00:00:00"
    if match[8]:
        raise Unrepresentable("ZONE_UNEXPECTED", value)
    return _local_text(match, match[7] or "", value)


def _local_text(match: re.Match[str], fraction: str, raw: object) -> str:
    """`YYYY-MM-DDTHH:MM:SS[.f...]` of a match of _TIMESTAMP; what no calendar or clock has is an issue."""
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    return f"{date_text(year, month, day, raw)}T{clock_text(hour, minute, second, fraction, raw)}"


_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):?([0-5]\d)?\Z", re.ASCII)


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """A zone by offset (`+08:00`) or name (`Asia/Shanghai`).

    Named zones come from the package tzdata, never from the machine: another image must give the same bytes.

    Raises:
        ValueError: there is no such zone.
    """
    if name in ("Z", "UTC"):
        return UTC
    match = _OFFSET.match(name)
    if match is None:
        return _named_zone(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return timezone(-offset if match[1] == "-" else offset)


def _named_zone(name: str) -> ZoneInfo:
    parts = name.split("/")
    if not all(re.fullmatch(r"[A-Za-z0-9_+-]{1,40}", part) for part in parts):
        raise _no_zone(name)
    try:
        with resources.files("tzdata.zoneinfo").joinpath(*parts).open("rb") as data:
            return ZoneInfo.from_file(data, key=name)
    except (OSError, ValueError):
        raise _no_zone(name) from None


def _no_zone(name: str) -> ValueError:
    return ValueError(f"unknown time zone {name!r}; use an offset such as +08:00 or a name such as Asia/Shanghai")


def utc_text(local: datetime, fraction: str, raw: object) -> str:
    """An aware time of whole seconds as `...Z`, with the fraction digits as sent."""
    try:
        moment = local.astimezone(UTC)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", raw) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{fraction}" if fraction else "") + "Z"


def timestamptz_in(default_zone: str | None) -> Converter:
    """A converter for times with a zone; `default_zone` reads text that carries none, None makes that an issue."""
    default = zone(default_zone) if default_zone is not None else None
    return partial(to_timestamptz, default)


def to_timestamptz(default: tzinfo | None, value: object) -> str:
    match = _TIMESTAMP.match(text_of(value))
    if match is None:
        raise Unrepresentable("INVALID_TIMESTAMP", value)
    try:
        tz = zone(match[8]) if match[8] else default
    except ValueError:
        raise Unrepresentable("INVALID_TIMESTAMP", value) from None
    if tz is None:
        raise Unrepresentable("ZONE_MISSING", value)
    local = datetime.fromisoformat(_local_text(match, "", value)).replace(tzinfo=tz)
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        # the clock was set back or forward: this local time happened twice, or never
        raise Unrepresentable("LOCAL_TIME_AMBIGUOUS", value)
    return utc_text(local, match[7] or "", value)
