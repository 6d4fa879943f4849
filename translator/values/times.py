"""Dates and times as text. If a source sends components, it builds the text with the functions in this module."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from translator.values.scalar import Assumed, Unrepresentable, text_of

OVERLAP, GAP = "TZ_OVERLAP", "TZ_GAP"
"""Assumptions about a local time that its zone repeats (clocks were set back) or skips (clocks were set forward).
"""

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?\s?(Z|UTC|[+-]\d{2}(?::?\d{2})?)?\Z", re.ASCII
)


# Years before 1 and after 9999, as printed by Oracle and PostgreSQL, and PostgreSQL's infinite times.
_BEYOND = re.compile(
    r"(?:(?:-\d{4,}|\+?\d{5,})-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2}\S*)?|\d{4,}-\d{2}-\d{2}.* BC|-?infinity)\Z", re.ASCII
)


def date_text(year: int, month: int, day: int, raw: object) -> str:
    """Return `YYYY-MM-DD`. A date that does not exist (such as a zero date), or a year without four digits, is an
    issue.
    """
    try:
        date(year, month, day)
    except (ValueError, OverflowError):
        code = "ZERO_DATE" if 0 in (year, month, day) else "INVALID_DATE" if 1 <= year <= 9999 else "OUT_OF_RANGE"
        raise Unrepresentable(code, raw) from None
    return f"{year:04d}-{month:02d}-{day:02d}"


def _refused(text: str, code: str) -> Unrepresentable:
    """Return the issue for text that matches no pattern above: a year that is out of range, or otherwise `code`."""
    return Unrepresentable("OUT_OF_RANGE" if _BEYOND.match(text) else code, text)


def clock_text(hour: int, minute: int, second: int, fraction: str, raw: object) -> str:
    """Return the time of day `HH:MM:SS[.f...]`. `fraction` contains the digits as sent, at most 9."""
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        raise Unrepresentable("INVALID_TIME", raw)
    return f"{hour:02d}:{minute:02d}:{second:02d}" + (f".{fraction}" if fraction else "")


def to_date(value: object) -> str:
    text = text_of(value)
    match = _DATE.match(text)
    if match is None:
        # Oracle's DATE and some writers add midnight to a date.
        stamp = _TIMESTAMP.match(text)
        if stamp is None or stamp[8] or any(int(part or 0) for part in stamp.group(4, 5, 6, 7)):
            raise _refused(text, "INVALID_DATE")
        match = stamp
    return date_text(int(match[1]), int(match[2]), int(match[3]), value)


def to_time(value: object) -> str:
    """Return `[-]HH:MM:SS[.f...]`. MySQL's TIME covers up to 838 hours in both directions. Zero has no sign."""
    match = _TIME.match(text_of(value))
    if match is None or int(match[3]) > 59 or int(match[4]) > 59:
        raise Unrepresentable("INVALID_TIME", value)
    sign, hours, minutes, seconds, fraction = match.groups()
    text = f"{int(hours):02d}:{minutes}:{seconds}" + (f".{fraction}" if fraction else "")
    return sign + text if text.strip("0:.") else text


def to_timestamp(value: object) -> str:
    text = text_of(value)
    match = _TIMESTAMP.match(text)
    if match is None:
        day = _DATE.match(text)
        if day is None:
            raise _refused(text, "INVALID_TIMESTAMP")
        return date_text(int(day[1]), int(day[2]), int(day[3]), value) + "T00:00:00"
    if match[8]:
        raise Unrepresentable("ZONE_UNEXPECTED", value)
    return _local_text(match, match[7] or "", value)


def _local_text(match: re.Match[str], fraction: str, raw: object) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS[.f...]` for a match of _TIMESTAMP. A date or time that does not exist is an issue."""
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    return f"{date_text(year, month, day, raw)}T{clock_text(hour, minute, second, fraction, raw)}"


_OFFSET = re.compile(r"([+-])([01]\d|2[0-3]):?([0-5]\d)?\Z", re.ASCII)


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """Return a time zone by offset (`+08:00`) or name (`Asia/Shanghai`).

    Named zones come from the tzdata package, never from the machine, so that every image gives the same bytes.

    Raises:
        ValueError: the zone does not exist.
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
    return ValueError(f"unknown time zone {name!r}; use a UTC offset such as +08:00, or a name such as Asia/Shanghai")


def utc_text(local: datetime, fraction: str, raw: object) -> str:
    """Return an aware time in whole seconds as `...Z`, with the fraction digits as sent.

    Raises:
        Assumed: the zone repeats the local time (clocks were set back; the earlier moment is used) or skips it (clocks
            were set forward). Both are read with the offset before the change, as java.time does.
        Unrepresentable: OUT_OF_RANGE.
    """
    try:
        moment, other = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", raw) from None
    text = moment.isoformat()[:19] + (f".{fraction}" if fraction else "") + "Z"
    if moment == other:
        return text
    raise Assumed(text, OVERLAP if moment < other else GAP)


def to_timestamptz(default: tzinfo | None, value: object) -> str:
    text = text_of(value)
    match = _TIMESTAMP.match(text)
    if match is None:
        raise _refused(text, "INVALID_TIMESTAMP")
    try:
        tz = zone(match[8]) if match[8] else default
    except ValueError:
        raise Unrepresentable("INVALID_TIMESTAMP", value) from None
    if tz is None:
        raise Unrepresentable("ZONE_MISSING", value)
    local = datetime.fromisoformat(_local_text(match, "", value)).replace(tzinfo=tz)
    return utc_text(local, match[7] or "", value)
