"""Convert cells as canal prints them to canonical scalars, if canal's format is not the usual one (§7.1)."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from translator.message import Scalar
from translator.values import Converter, Unrepresentable, bytes_from_latin1, converter
from translator.values.scalar import text_of

# -- numbers


def within(low: int, high: int, convert: Converter, value: object) -> Scalar:
    number = convert(value)
    if not isinstance(number, int) or not low <= number <= high:
        raise Unrepresentable("OUT_OF_RANGE", value)
    return number


def bit1(value: object) -> bool:
    return within(0, 1, converter("uint8"), value) == 1


def wide_bit(width: int, value: object) -> Scalar:
    text = converter("uint64")(value)
    if int(str(text)) >> width:
        raise Unrepresentable("OUT_OF_RANGE", value)
    return text


# -- bytes and documents


def padded_bytes(length: int, value: object) -> Scalar:
    """A BINARY(n) always has n bytes, but canal omits trailing 0x00 bytes."""
    if isinstance(value, str) and len(value) > length:
        raise Unrepresentable("LENGTH_EXCEEDED", value)
    return bytes_from_latin1(value.ljust(length, "\0") if isinstance(value, str) else value)


_NUMBERS = re.compile(r"\[(?:-?[0-9]{1,3}(?:, ?-?[0-9]{1,3})*)?\]\Z")


def bytes_from_numbers(value: object) -> str:
    """Return bytes printed as a list of numbers, as Java prints an array of its signed bytes."""
    if not isinstance(value, str) or not _NUMBERS.match(value):
        raise Unrepresentable("NOT_BYTES", value)
    numbers = [int(number) for number in value[1:-1].split(",") if number]
    if not all(-128 <= number <= 255 for number in numbers):
        raise Unrepresentable("NOT_BYTES", value)
    return base64.b64encode(bytes(number & 0xFF for number in numbers)).decode()


class JsonCell(Struct, frozen=True):
    """Return the text of a cell that is an array or an object. The Flink family writes columns with several values in
    this way.
    """

    text: str

    def __str__(self) -> str:
        return self.text


_PARTIAL_JSON = re.compile(r"\s*JSON_(REPLACE|INSERT|ARRAY_INSERT|REMOVE|SET)\s*\(", re.IGNORECASE)
_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def json_text(value: object) -> str:
    """Return the text as sent. A server that logs partial JSON sends a function call instead of the document."""
    if isinstance(value, JsonCell):
        return value.text
    text = text_of(value)
    if _PARTIAL_JSON.match(text):
        raise Unrepresentable("JSON_PARTIAL_UPDATE", value)
    try:
        _check_json(text)
    except (msgspec.DecodeError, RecursionError):
        raise Unrepresentable("NOT_JSON", value) from None
    return text


_BYTE_ORDERS = ("\0", "\1")
"""The first byte of every WKB value."""


def wkb(value: object) -> Scalar:
    """WKB after four bytes of SRID. The canonical form cannot store an SRID other than 0."""
    if not isinstance(value, str) or len(value) < 9 or value[4] not in _BYTE_ORDERS:
        raise Unrepresentable("NOT_WKB", value)
    if value[:4] != "\0\0\0\0":
        raise Unrepresentable("SRID_UNSUPPORTED", value)
    return bytes_from_latin1(value[4:])


# -- labels

_INDEX = re.compile(r"[0-9]{1,20}\Z")


def _one_reading(value: object, readings: Sequence[str | None], code: str) -> str:
    """Return the text of the label if all interpretations agree on it. If no label is found, or if the interpretations
    differ, the value is an issue.
    """
    found = {reading for reading in readings if reading is not None}
    if len(found) != 1:
        raise Unrepresentable("LABEL_AMBIGUOUS" if found else code, value)
    return found.pop()


def enum_label(labels: Sequence[str], form: str, value: object) -> str:
    """A 1-based index, or a label. 0 is the empty string that MySQL stores for a rejected value."""
    text = str(value)
    by_index = None
    if form != "text" and _INDEX.match(text) and int(text) <= len(labels):
        by_index = labels[int(text) - 1] if int(text) else ""
    by_text = text if form != "index" and (text in labels or not text) else None
    return _one_reading(value, (by_index, by_text), "ENUM_UNKNOWN")


def set_labels(labels: Sequence[str], form: str, value: object) -> str:
    """A bit mask in which bit 0 is the first label, or labels separated by commas."""
    text = str(value)
    by_mask = None
    if form != "text" and _INDEX.match(text) and not int(text) >> len(labels):
        by_mask = ",".join(label for bit, label in enumerate(labels) if int(text) >> bit & 1)
    by_text = text if form != "index" and (not text or set(text.split(",")) <= set(labels)) else None
    return _one_reading(value, (by_mask, by_text), "SET_UNKNOWN")


def without_labels(value: object) -> Scalar:
    raise Unrepresentable("LABEL_MISSING", value)


# -- times

_SECONDS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))?\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of_seconds(value: object) -> str:
    """Return the time from a TIMESTAMP printed as seconds since 1970, with a fraction."""
    match = _SECONDS.match(value) if isinstance(value, str) else None
    if match is None:
        raise Unrepresentable("INVALID_TIMESTAMP", value)
    seconds, fraction = int(match[1]), (match[2] or "").rstrip("0")
    if seconds == 0:
        raise Unrepresentable("ZERO_DATE", value)  # MySQL's TIMESTAMP begins one second later
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise Unrepresentable("OUT_OF_RANGE", value) from None
    return moment.isoformat()[:19] + (f".{fraction}" if fraction else "") + "Z"


def time_of_day(value: object) -> Scalar:
    text = converter("time")(value)
    if int(str(text).lstrip("-").partition(":")[0]) > 838:
        raise Unrepresentable("OUT_OF_RANGE", value)
    return text
