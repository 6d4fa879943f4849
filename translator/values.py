"""Source scalar -> canonical scalar, by the declared type of the column: tables, no branches on content.

A canonical scalar is what the row images carry (design section 4, Image encoding). The type of the column chooses the
encoding, never the value. What has no faithful form raises `Unrepresentable`: the column is left out of the image and
reported as an issue, never rounded and never guessed.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from importlib import resources
from typing import TypeAlias
from zoneinfo import ZoneInfo

from translator.message import Scalar

Converter: TypeAlias = Callable[[object], Scalar]
"""Takes a source scalar (text, int, bool, Decimal, float, bytes; never None), returns the canonical one."""

MAX_EXPONENT = 2_000
"""Beyond +-2 000 digits a plain decimal is not written out (design section 4)."""

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


class Unrepresentable(Exception):
    """A value without a faithful canonical form. `code` says why; `raw` is its text, unbounded."""

    def __init__(self, code: str, raw: object) -> None:
        super().__init__(code)
        self.code = code
        self.raw = raw_text(raw)


def raw_text(value: object) -> str:
    """The raw text of an issue: bytes as base64, everything else as text; what UTF-8 cannot carry is escaped."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


# -- numbers

_DIGITS = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?\Z")
_SPECIAL_FLOATS = {
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
    text = _ascii(value)
    if not _DIGITS.match(text) or len(text) > MAX_EXPONENT:
        raise Unrepresentable("NOT_AN_INTEGER", value)
    return int(text)


def _bounded(low: int, high: int, value: object) -> int:
    number = _integer(value)
    if not low <= number <= high:
        raise Unrepresentable("OUT_OF_RANGE", value)
    return number


def _uint64(value: object) -> str:
    return str(_bounded(*INTEGER_BOUNDS["uint64"], value))


def _decimal_of(value: object) -> Decimal:
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, int):
        number = Decimal(value)
    else:
        text = _ascii(value).strip()
        if not _NUMBER.match(text):
            raise Unrepresentable("NOT_A_NUMBER", value)
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise Unrepresentable("NOT_A_NUMBER", value) from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):  # NaN and the infinities have a letter there
        raise Unrepresentable("NOT_A_NUMBER", value)
    if abs(exponent) > MAX_EXPONENT or abs(number.adjusted()) > MAX_EXPONENT:
        raise Unrepresentable("EXPONENT_OUT_OF_RANGE", value)
    return number


def _plain(number: Decimal) -> str:
    """Decimal text without an exponent; negative zero loses its sign, as no database keeps it."""
    text = format(number, "f")
    return text[1:] if text.startswith("-") and not number else text


def _decimal(value: object) -> str:
    """A decimal without declared scale: digits as sent, positive exponents written out."""
    return _plain(_decimal_of(value))


def _scaled_decimal(precision: int, scale: int, value: object) -> str:
    """A decimal(p,s): exactly `scale` fraction digits. Digits that do not fit are an issue, never a rounding."""
    whole, _, fraction = _plain(_decimal_of(value)).partition(".")
    digits = whole + fraction.ljust(scale, "0")
    end = max(len(whole) + scale, 0)  # of the digits that the type keeps; before the point when the scale is negative
    if digits[end:].strip("0"):
        raise Unrepresentable("SCALE_EXCEEDED", value)
    if len(digits[:end].lstrip("-0")) > precision:
        raise Unrepresentable("PRECISION_EXCEEDED", value)
    return f"{whole}.{digits[len(whole) : end]}" if scale > 0 else whole


def _float64(value: object) -> float | str:
    if isinstance(value, (str, Decimal)):
        return _float_of_text(str(value).strip().lower(), value)
    if not isinstance(value, (int, float)):
        raise Unrepresentable("NOT_A_NUMBER", value)
    try:
        number = float(value)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None
    return number if math.isfinite(number) else _SPECIAL_FLOATS[str(number)]


def _float_of_text(text: str, raw: object) -> float | str:
    special = _SPECIAL_FLOATS.get(text)
    if special is not None:
        return special
    if not _NUMBER.match(text):
        raise Unrepresentable("NOT_A_NUMBER", raw)
    number = float(text)
    vanished = not number and text.partition("e")[0].strip("+-.0")
    if vanished or math.isinf(number):
        raise Unrepresentable("OUT_OF_RANGE", raw)
    return number


_SMALLEST_NORMAL_SINGLE = 2.0**-126


def _float32(value: object) -> float | str:
    """The single-precision number, rounded to the fewest digits that still name it: 1.100000023841858 becomes 1.1."""
    number = _float64(value)
    if isinstance(number, str):
        return number
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None
    (single,) = struct.unpack("<f", packed)
    if number and not single:
        raise Unrepresentable("OUT_OF_RANGE", value)
    # Six digits find every shorter decimal too, but not among the subnormals, where a number has less precision.
    for digits in range(6 if abs(single) >= _SMALLEST_NORMAL_SINGLE else 1, 9):
        short = float(f"{single:.{digits}g}")
        if struct.pack("<f", short) == packed:
            return short
    return float(f"{single:.9g}")


# -- text, booleans, bytes

_BOOLEANS = {"1": True, "0": False, "true": True, "false": False, "t": True, "f": False, "b'1'": True, "b'0'": False}


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    found = _BOOLEANS.get(str(value).strip().lower())
    if found is None:
        raise Unrepresentable("NOT_A_BOOLEAN", value)
    return found


def _string(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _decimal(Decimal(repr(value))) if math.isfinite(value) else _SPECIAL_FLOATS[str(value)]
    if isinstance(value, (int, Decimal)):
        return _decimal(value)
    raise Unrepresentable("NOT_TEXT", value)


def _unknown(value: object) -> Scalar:
    """No type is declared: text and booleans as they are, numbers as exact text."""
    return value if isinstance(value, bool) else _string(value)


def _bytes(value: object) -> str:
    if not isinstance(value, bytes):
        raise Unrepresentable("NOT_BYTES", value)
    return base64.b64encode(value).decode("ascii")


def bytes_from_hex(value: object) -> str:
    """Bytes sent as hex digits, to base64."""
    try:
        return _bytes(binascii.unhexlify(_ascii(value)))
    except ValueError:
        raise Unrepresentable("NOT_HEX", value) from None


def bytes_from_base64(value: object) -> str:
    """Bytes sent as base64, checked and written again."""
    try:
        return _bytes(base64.b64decode(_ascii(value), validate=True))
    except ValueError:
        raise Unrepresentable("NOT_BASE64", value) from None


def bytes_from_latin1(value: object) -> str:
    """Bytes sent as one character each, U+0000 to U+00FF (formats/canal.md section 7.1), to base64."""
    try:
        return _bytes(_text(value).encode("latin-1"))
    except UnicodeEncodeError:
        raise Unrepresentable("NOT_LATIN1", value) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unrepresentable("NOT_TEXT", value)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Unrepresentable("LONE_SURROGATE", value) from None
    return value


def _ascii(value: object) -> str:
    text = _text(value)
    if not text.isascii():
        raise Unrepresentable("NOT_ASCII", value)
    return text


# -- dates and times (text forms; structured sources build the text with the functions below)

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


def _date(value: object) -> str:
    match = _DATE.match(_text(value))
    if match is None:
        # Oracle's DATE and some writers send midnight along
        stamp = _TIMESTAMP.match(_text(value))
        if stamp is None or stamp[8] or any(int(part or 0) for part in stamp.group(4, 5, 6, 7)):
            raise Unrepresentable("INVALID_DATE", value)
        match = stamp
    return date_text(int(match[1]), int(match[2]), int(match[3]), value)


def _time(value: object) -> str:
    """`[-]HH:MM:SS[.f...]`; MySQL's TIME runs to 838 hours either way."""
    match = _TIME.match(_text(value))
    if match is None or int(match[3]) > 59 or int(match[4]) > 59:
        raise Unrepresentable("INVALID_TIME", value)
    sign, hours, minutes, seconds, fraction = match.groups()
    return f"{sign}{int(hours):02d}:{minutes}:{seconds}" + (f".{fraction}" if fraction else "")


def _timestamp(value: object) -> str:
    match = _TIMESTAMP.match(_text(value))
    if match is None:
        day = _DATE.match(_text(value))
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
    return partial(_timestamptz, default)


def _timestamptz(default: tzinfo | None, value: object) -> str:
    match = _TIMESTAMP.match(_text(value))
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


# -- the table

_CONVERTERS: Mapping[str, Converter] = {
    "boolean": _boolean,
    **{name: partial(_bounded, *bounds) for name, bounds in INTEGER_BOUNDS.items()},
    "uint64": _uint64,
    "decimal": _decimal,
    "float32": _float32,
    "float64": _float64,
    "string": _string,
    "bytes": _bytes,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": partial(_timestamptz, None),
    "interval": _text,
    "json": _text,
    "uuid": _text,
    "enum": _string,
    "set": _string,
    "geometry": _bytes,
    "unknown": _unknown,
}

CANONICAL_TYPES = tuple(_CONVERTERS)
_DECIMAL_TYPE = re.compile(r"decimal\((\d{1,4}),(-?\d{1,4})\)\Z")


@lru_cache(maxsize=4096)
def converter(canonical_type: str) -> Converter:
    """The converter of a canonical type for the plain spelling of its values.

    Dialects whose writers spell a type otherwise (hex, latin-1, a default zone) take the named function instead.

    Raises:
        ValueError: no such type.
    """
    found = _CONVERTERS.get(canonical_type)
    if found is not None:
        return found
    match = _DECIMAL_TYPE.match(canonical_type)
    if match is None:
        raise ValueError(
            f"unknown type {canonical_type!r}; allowed: {', '.join(CANONICAL_TYPES)}, decimal(p,s) without spaces"
        )
    precision, scale = int(match[1]), int(match[2])
    if max(precision, abs(scale)) > MAX_EXPONENT:
        raise ValueError(f"{canonical_type}: precision and scale end at {MAX_EXPONENT}")
    return partial(_scaled_decimal, precision, scale)
