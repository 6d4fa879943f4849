"""Record files: raw Kafka records as JSON lines (design section 8)."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from translator.errors import CdcError
from translator.message import Message


class BadRecordFile(CdcError):
    """A line is not a record: nothing can be accounted for, so the run fails with exit code 1."""


_BOM = b"\xef\xbb\xbf"
_HINT = 'a record is {"value": ...} on one line; --raw takes a whole file as one message'


class _Line(Struct, forbid_unknown_fields=True):
    topic: str = "file"
    partition: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    timestamp: Annotated[int, Meta(ge=-1, le=(2**63 - 1) // 1000)] = 0
    """Milliseconds that the envelope can hold as microseconds; -1 is Kafka's word for none."""
    key: str | None = None
    key_base64: str | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_base64: str | msgspec.UnsetType | None = msgspec.UNSET
    headers: dict[str, str | None] | list[tuple[str, str | None]] | None = None
    """An object, or a list of [name, value] pairs where a name repeats."""
    headers_base64: list[tuple[str, str | None]] | None = None
    """The same pairs, where a value is not text."""


def read_records(path: Path) -> Iterator[Message]:
    """The messages of a record file; `-` is standard input. The default offset is the line number from 0.

    Raises:
        BadRecordFile: a line is not a record.
    """
    for number, text in enumerate(_read(path).removeprefix(_BOM).split(b"\n")):
        if not text.strip():
            continue
        try:
            yield _message(text, number)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise BadRecordFile(f"{path}: line {number} is not a record: {error}; {_HINT}") from None


def read_raw(path: Path, offset: int = 0) -> Message:
    """The whole file as the value of one message."""
    return Message("file", 0, offset, 0, None, _read(path))


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _message(text: bytes, number: int) -> Message:
    line = msgspec.json.decode(text, type=_Line)
    return Message(
        topic=line.topic,
        partition=line.partition,
        offset=number if line.offset is None else line.offset,
        timestamp_ms=line.timestamp,
        key=_key(line),
        value=_value(line),
        headers=tuple(_headers(line)),
    )


def _value(line: _Line) -> bytes | None:
    if line.value_base64 is not msgspec.UNSET:
        if line.value is not msgspec.UNSET:
            raise ValueError("both value and value_base64 are given")
        return None if line.value_base64 is None else _decoded(line.value_base64)
    if line.value is msgspec.UNSET:
        raise ValueError("value or value_base64 is required")
    raw = bytes(line.value)
    if raw == b"null":
        return None
    # A string is the value's text; an object is a convenience: the message itself, written as it lies in the line.
    return msgspec.json.decode(raw, type=str).encode() if raw.startswith(b'"') else raw


def _key(line: _Line) -> bytes | None:
    if line.key_base64 is not None:
        if line.key is not None:
            raise ValueError("both key and key_base64 are given")
        return _decoded(line.key_base64)
    return None if line.key is None else line.key.encode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("key_base64, value_base64 or headers_base64 is not base64") from None


def _headers(line: _Line) -> Iterator[tuple[str, bytes | None]]:
    if line.headers_base64 is not None:
        if line.headers is not None:
            raise ValueError("both headers and headers_base64 are given")
        yield from ((name, None if value is None else _decoded(value)) for name, value in line.headers_base64)
        return
    given = line.headers or ()
    for name, value in given.items() if isinstance(given, dict) else given:
        yield name, None if value is None else value.encode()


def record_line(message: Message) -> bytes:
    """A message as a line, from which `read_records` makes the same message; only the id of its topic is left out."""
    line: dict[str, object] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
    }
    for name, data in (("key", message.key), ("value", message.value)):
        try:
            line[name] = None if data is None else data.decode()
        except UnicodeDecodeError:
            line[f"{name}_base64"] = _encoded(data)
    try:
        line["headers"] = [(name, None if value is None else value.decode()) for name, value in message.headers]
    except UnicodeDecodeError:
        line["headers_base64"] = [(name, _encoded(value)) for name, value in message.headers]
    return msgspec.json.encode(line) + b"\n"


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
