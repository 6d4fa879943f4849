"""Read dates and times in their usual encoding, as `fast_path` reads cells. Each component follows the byte 02, which
selects its union branch. The year takes two bytes, and each other component takes one byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache

from translator.dialects._avro_primitives import int_end, read_int, read_long, read_text
from translator.dialects.dts_avro import times
from translator.dialects.dts_avro.record import Cell
from translator.dialects.dts_avro.values import CellReader, Reading
from translator.message import Scalar
from translator.values import Unrepresentable, date_text

_THREE_THERE = b"\2\2\2"
_NO_CLOCK = b"\0\0\0\0"
_NO_FRACTION = (b"\2\0", b"\0")
# The two digits for each number, keyed by the number's zigzag byte.
_SECONDS: Mapping[int, str] = {2 * number: f"{number:02d}" for number in range(60)}
_MINUTES: Mapping[int, str] = {byte: f"{digits}:" for byte, digits in _SECONDS.items()}
_HOURS: Mapping[int, str] = {2 * number: f"{number:02d}:" for number in range(24)}


class _Days(dict[bytes, str]):
    """Dates, keyed by the seven bytes for year, month and day. Each date is computed once. A look-up raises KeyError
    for another encoding, and for a date that does not exist.
    """

    def __missing__(self, parts: bytes) -> str:
        if parts[:1] + parts[3::2] != _THREE_THERE or parts[1] < 0x80 or max(parts[2::2]) >= 0x80:
            raise KeyError
        year, month, day = (read_int(parts, at)[0] for at in (1, 4, 6))
        try:
            text = date_text(year, month, day, None)
        except Unrepresentable:
            raise KeyError from None
        if len(self) >= _MAX_DAYS:
            self.clear()
        self[parts] = text
        return text


_MAX_DAYS = 8192
_DAYS = _Days()


def _fraction(digits: int) -> Callable[[bytes], str | None]:
    """Return a function that converts the last component's bytes to `.f…`. The function returns an empty string for
    zero, and None if the fraction must be checked.
    """
    text = f".%0{digits}d"
    limit = 10**digits

    def read(parts: bytes) -> str | None:
        if parts in _NO_FRACTION:
            return ""
        if parts[0] != _THERE:
            return None
        if len(parts) == _MICROS_BYTES:  # the usual length for micros
            number = parts[1] & 0x7F | (parts[2] & 0x7F) << 7 | parts[3] << 14
            number = -number if number & 1 else number >> 1
        else:
            number, _ = read_int(parts, 1)
        return text % number if 0 < number < limit else None

    return read


_THERE = 2
_MICROS_BYTES = 4


def read_date(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    def read(cell: Cell) -> Scalar:
        if cell[8:] == _NO_CLOCK:
            try:
                return _DAYS[cell[1:8]]
            except KeyError:
                pass
        return plain(cell)

    return read


def read_local(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        if cell[8:14:2] == _THREE_THERE:
            try:
                text = f"{_DAYS[cell[1:8]]}T{_HOURS[cell[9]]}{_MINUTES[cell[11]]}{_SECONDS[cell[13]]}"
            except KeyError:
                return plain(cell)
            fraction = fraction_of(cell[14:])
            if fraction is not None:
                return text + fraction
        return plain(cell)

    return read


def read_time(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """Return a reader for non-negative times of day. In MySQL, times may be negative and longer than a day."""
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        if cell[1:4] == b"\0\0\0" and cell[4:10:2] == _THREE_THERE:
            try:
                text = f"{_HOURS[cell[5]]}{_MINUTES[cell[7]]}{_SECONDS[cell[9]]}"
            except KeyError:
                return plain(cell)
            fraction = fraction_of(cell[10:])
            if fraction is not None:
                return text + fraction
        return plain(cell)

    return read


def read_zoned(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """Return a reader for the bytes of a local time and the zone that follows."""
    fraction_of = _fraction(reading.digits)

    def read(cell: Cell) -> Scalar:
        try:
            text = f"{_DAYS[cell[1:8]]}T{_HOURS[cell[9]]}{_MINUTES[cell[11]]}{_SECONDS[cell[13]]}"
        except (KeyError, IndexError):
            return plain(cell)
        if cell[8:14:2] != _THREE_THERE:
            return plain(cell)
        end = int_end(cell, 15) if cell[14] else 15
        fraction = fraction_of(cell[14:end])
        ahead = None if fraction is None else _ahead(cell[end:])
        if ahead is None:
            return plain(cell)
        if not ahead:
            return f"{text}{fraction}Z"
        try:
            return f"{(datetime.fromisoformat(text) - ahead).isoformat()}{fraction}Z"
        except OverflowError:
            return plain(cell)

    return read


@lru_cache(maxsize=1024)
def _ahead(zone: bytes) -> timedelta | None:
    """Return a zone's constant offset from UTC, or None for a zone that is unknown or changes its offset."""
    name, end = read_text(zone, 0)
    try:
        found = times.zone_of(name) if end == len(zone) else None
    except ValueError:
        return None
    return found.utcoffset(None) if isinstance(found, timezone) else None


def read_instant(canonical_type: str, reading: Reading, plain: CellReader) -> CellReader:
    """10, seconds, micros."""

    def read(cell: Cell) -> Scalar:
        seconds, at = read_long(cell, 1)
        micros, _ = read_int(cell, at)
        if not 0 < seconds < _YEAR_10000 or not 0 <= micros < 10**6:
            return plain(cell)
        days, seconds = divmod(seconds, 86_400)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        tail = f".{micros:06d}Z" if micros else "Z"
        return f"{_date_of(days)}T{hours:02d}:{minutes:02d}:{seconds:02d}{tail}"

    return read


_YEAR_10000 = 253_402_300_800


@lru_cache(maxsize=8192)
def _date_of(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
