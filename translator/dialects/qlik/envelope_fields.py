"""A data message's headers (§1 and 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

from cdc_core.envelope import Tx
from translator.dialects._json import field, one_of
from translator.dialects.qlik.masks import read_mask
from translator.errors import ErrorCode, MessageError

OPERATIONS: Mapping[str, str] = {"REFRESH": "r", "INSERT": "c", "UPDATE": "u", "DELETE": "d"}
READ: Mapping[str, str] = {"READ": "r"}
"""An operation that mongo-kafka treats as REFRESH, although nobody knows a producer that writes it (§4)."""
MAX_COUNTER = 2**63 - 1

CARRIED = ("streamPosition", "externalSchemaId")
"""Headers without a field in the envelope, which an option adds to `ext`."""


class HeaderRules(Struct, frozen=True):
    """The operator's choices about headers."""

    operations: Mapping[str, str]
    numeric_timestamp: str
    carried: tuple[str, ...]


class Headers(Struct, frozen=True):
    """A message's headers. For every header, null, `""` and a missing header mean the same (§4)."""

    path: str
    op: str
    change_sequence: str | None
    ts_commit_us: int | None
    tx: Tx | None
    change_mask: int | None
    column_mask: int | None
    notes: tuple[str, ...]
    ext: dict[str, str] | None


def read_headers(body: Mapping[str, Any], path: str, rules: HeaderRules) -> Headers:
    """Return the headers in a message body. Unknown headers are ignored, because new versions of the writer add
    headers.

    Raises:
        MessageError: UNKNOWN_OPERATION, MISSING_FIELD or INVALID_FIELD.
    """
    headers = field(body, "headers", dict, path)
    path = f"{path}.headers"
    operation: str = field(headers, "operation", str, path)
    # Case folding can turn letters from other alphabets into letters in a keyword, but `ınsert` is not a keyword.
    word = operation.upper() if operation.isascii() else operation
    notes: list[str] = []
    return Headers(
        path,
        one_of(word, rules.operations, "operation", f"{path}.operation", ErrorCode.UNKNOWN_OPERATION),
        _change_sequence(headers, path, notes),
        _timestamp(headers, path, rules, notes),
        _transaction(headers, path),
        read_mask(headers, "changeMask", path),
        read_mask(headers, "columnMask", path),
        tuple(notes),
        _carried(headers, path, rules) if rules.carried else None,
    )


def _carried(headers: Mapping[str, Any], path: str, rules: HeaderRules) -> dict[str, str] | None:
    found = {name: text for name in rules.carried if (text := _text(headers, name, path)) is not None}
    return found or None


def _text(headers: Mapping[str, Any], name: str, path: str) -> str | None:
    return field(headers, name, str, path, optional=True) or None


CHANGE_SEQUENCE = (
    r"(?!0000)(?:[0-9]{4}(?:(?:0[1-9]|1[0-2])(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])(?:29|30)|(?:0[13578]|1[02])31)"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)0229)"
    r"(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][0-9]{2}[0-9]{19}"
)
"""A pattern for a valid time in hundredths of a second, followed by a number with 19 digits, which is 35 digits in all
(§4). The byte order of matching sequences is the order of a task's changes.
"""
_is_regular = re.compile(CHANGE_SEQUENCE).fullmatch


def _change_sequence(headers: Mapping[str, Any], path: str, notes: list[str]) -> str | None:
    sequence = _text(headers, "changeSequence", path)
    if sequence is not None and not _is_regular(sequence):
        notes.append("CHANGE_SEQUENCE_IRREGULAR")
    return sequence


def _transaction(headers: Mapping[str, Any], path: str) -> Tx | None:
    """Return the transaction without its size. The counter of the last event is not the size if filters or other topics
    remove events.
    """
    transaction = _text(headers, "transactionId", path)
    counter = field(headers, "transactionEventCounter", int, path, optional=True)
    last = field(headers, "transactionLastEvent", bool, path, optional=True)
    if counter is not None and not 0 <= counter <= MAX_COUNTER:
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            f"transactionEventCounter is not between 0 and {MAX_COUNTER}",
            path=f"{path}.transactionEventCounter",
        )
    # Positions count from 1 in the envelope and in Replicate's documentation, so 0 means "unknown".
    return None if transaction is None else Tx(transaction, seq=counter or None, last=last)


# -- timestamp: UTC, with or without a zone in the text

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))?\Z",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_MICRO = (datetime.min - _EPOCH) // _MICROSECOND
_LAST_MICRO = (datetime.max - _EPOCH) // _MICROSECOND


def _timestamp(headers: Mapping[str, Any], path: str, rules: HeaderRules, notes: list[str]) -> int | None:
    """Return microseconds since 1970, UTC. Digits below the microsecond are dropped, because the envelope cannot hold
    them.
    """
    value = field(headers, "timestamp", (str, int, Decimal), path, optional=True)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        return _numeric_timestamp(value, path, rules, notes)
    micros = read_time(value)
    if micros is None:
        raise _no_time("not a valid time; expected YYYY-MM-DDTHH:MM:SS.fff", path)
    return micros


def _numeric_timestamp(value: int | Decimal, path: str, rules: HeaderRules, notes: list[str]) -> int | None:
    """Read a timestamp that is a number. The unit of such numbers is not documented, but the operator can set it. The
    samples in michelin's README contain 1000.
    """
    if rules.numeric_timestamp == "note":
        notes.append("TIMESTAMP_UNREADABLE")
        return None
    if rules.numeric_timestamp == "reject":
        raise _no_time("a number whose unit is undocumented (set the option numeric_timestamp)", path)
    if not isinstance(value, int) or not _FIRST_MICRO <= value <= _LAST_MICRO:
        raise _no_time("not a number of microseconds in the years 1 to 9999", path)
    return value


def _no_time(what: str, path: str) -> MessageError:
    return MessageError(ErrorCode.INVALID_FIELD, f"timestamp is {what}", path=f"{path}.timestamp")


def read_time(text: str) -> int | None:
    """Return microseconds since 1970 for a string, in UTC if it has no zone, or None if it is not a time."""
    match = _TIMESTAMP.match(text)
    try:
        return None if match is None else _micros(match)
    except ValueError:
        return None


def _micros(match: re.Match[str]) -> int:
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, zone_hours, zone_minutes = match.group(7, 8, 9, 10)
    micros = (datetime(year, month, day, hour, minute, second) - _EPOCH) // _MICROSECOND
    if fraction:
        micros += int(fraction[:6].ljust(6, "0"))
    if sign:
        offset = (int(zone_hours) * 60 + int(zone_minutes)) * 60_000_000
        micros += offset if sign == "-" else -offset
    return micros
