"""Convert `time` and `posttime` to points in time, in UTC (§2)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from msgspec import Struct

from translator.values import zone
from translator.values.times import GAP, OVERLAP

_CACHED = 4096
"""Cache size. A transaction has one commit time, and a busy table has many changes per second."""

_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})(?:\.(\d{0,9}))?(Z|[+-]\d{2}(?::?[0-5]\d)?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class Instant(Struct, frozen=True):
    """The result of reading a time's text."""

    micros: int | None
    """Microseconds since 1970 in UTC, or None if no zone is known."""

    exact: bool
    """True if the number keeps all information in the text. Otherwise, the text is kept as well."""

    zone_note: str | None = None
    """The note about the assumed zone, or that no zone is known. None if the text contains its zone."""

    assumed: str | None = None
    """TZ_OVERLAP or TZ_GAP: the local time occurs twice or never in its time zone (`values.times`)."""


class Instants:
    """Reads times. `default` is the zone for times that contain no zone."""

    def __init__(self, default: tzinfo | None, note: str) -> None:
        self._default = default
        self._note = note
        self.of = lru_cache(maxsize=_CACHED)(self._read)

    def _read(self, text: str) -> Instant:
        """Return the point in time.

        Raises:
            ValueError: the text is not a time, or the time does not exist in the calendar.
        """
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError("not a time such as 2017-06-16T14:24:34")
        clock, fraction, offset = match.groups()
        try:
            local = datetime.fromisoformat(clock)
            tz = zone(offset) if offset else self._default
        except ValueError:
            raise ValueError("a time that does not exist") from None
        note = None if offset else self._note
        if tz is None:
            return Instant(None, False, note)
        since = local - _EPOCH
        digits = fraction.ljust(9, "0") if fraction else "000000000"
        # If a local time is ambiguous or does not exist, Python uses the offset before the change, as columns do.
        ahead, assumed = tz.utcoffset(local) or timedelta(0), _assumed(tz, local)
        micros = (since - ahead) // _MICROSECOND + int(digits[:6])
        return Instant(micros, digits[6:] == "000" and assumed is None, note, assumed)


def _assumed(tz: tzinfo, local: datetime) -> str | None:
    if isinstance(tz, timezone):
        return None
    first, second = tz.utcoffset(local), tz.utcoffset(local.replace(fold=1))
    if first is None or second is None or first == second:
        return None
    return OVERLAP if first > second else GAP
