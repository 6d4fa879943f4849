"""Read files of raw messages, one per line. A line is a JSON record with everything that Kafka knows about a message,
or a bare value.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from translator.errors import CdcError
from translator.message import Message


class BadRecordFile(CdcError):
    """A line does not match the other lines in its file. The run fails with exit code 1, because its counts would mean
    nothing.
    """


class Line(Struct, frozen=True):
    """A message and its position in the file.

    Args:
        number: line number, counted from 1. None means that the whole file is the message.
        counted: the offset was not given, but assigned by counting.
    """

    file: Path
    number: int | None
    message: Message
    counted: bool = True


Form: TypeAlias = Literal["record", "message"]

_BOM = b"\xef\xbb\xbf"
_HINT = (
    'a record is one line with {"value": ...}; use --lines to read each line as a message value, or --raw to '
    "read the whole file as one"
)
_VALUES = frozenset({"value", "value_base64"})
"""Fields that identify a record. Every record has one of these fields. Messages never contain these fields. The only
exception is a flattened Qlik message with columns of these names.
"""

_PLACE = frozenset({"topic", "partition", "offset", "timestamp", "key_base64", "headers_base64"})
"""Other fields that occur only in records. An object with some of these fields but no value is an invalid record."""


class _Line(Struct, forbid_unknown_fields=True):
    topic: str = "file"
    partition: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    timestamp: Annotated[int, Meta(ge=-1, le=(2**63 - 1) // 1000)] = 0
    """The range of milliseconds that the envelope can hold as microseconds. -1 is Kafka's value for a missing
    timestamp.
    """
    key: str | None = None
    key_base64: str | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_base64: str | msgspec.UnsetType | None = msgspec.UNSET
    headers: dict[str, str | None] | list[tuple[str, str | None]] | None = None
    """Headers as an object or, if a name repeats, as [name, value] pairs."""
    headers_base64: list[tuple[str, str | None]] | None = None
    """The same pairs, for values that are not text."""


def read_files(files: Iterable[Path], *, bare: bool = False) -> list[Line]:
    """Yield all messages in the files. `-` is standard input.

    A message without an offset gets the number of its line, counted from 0 over all files in the call. Every message
    therefore has a position of its own.

    Args:
        bare: whether to treat each line as a message value, whatever it contains. Otherwise, the first line of a file
            decides for all its lines.

    Raises:
        BadRecordFile: a line does not match its file, or gives an offset that another message already has.
    """
    taken: dict[tuple[str, int, int], Line] = {}
    lines: list[Line] = []
    offset = 0
    for file in files:
        texts = _read(file).removeprefix(_BOM).split(b"\n")
        for line in _lines(file, texts, offset, bare=bare):
            message = line.message
            other = taken.setdefault((message.topic, message.partition, message.offset), line)
            if other is not line and (other.counted or line.counted):
                raise BadRecordFile(
                    f"{file}: line {line.number}: offset {message.offset} of topic {message.topic}, partition "
                    f"{message.partition} is already used in {other.file}, line {other.number}, and at least one of "
                    "these offsets was assigned automatically; specify an offset for each record"
                )
            lines.append(line)
        offset += len(texts) - (not texts[-1])
    return lines


def _lines(file: Path, texts: Iterable[bytes], first: int, *, bare: bool) -> Iterator[Line]:
    form: Form | None = "message" if bare else None
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        offset = first + number - 1
        try:
            form = form or _form(text)
            if form == "record":
                yield _record(file, number, text, offset)
            elif not bare and _is_record(text):
                raise BadRecordFile(f"{file}: line {number} is a record, but the lines before it are messages; {_HINT}")
            else:
                # A console consumer prints null for a message without a value.
                value = None if text.strip() == b"null" else text.removesuffix(b"\r")
                yield Line(file, number, Message("file", 0, offset, 0, None, value))
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            wanted = "not a record" if form else "neither a record nor a message"
            raise BadRecordFile(f"{file}: line {number} is {wanted}: {error}; {_HINT}") from None


def _form(text: bytes) -> Form:
    """Return whether a line is a record or a message, based on its fields.

    Raises:
        ValueError: the line is neither a record nor a message.
    """
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw] | None) or {}
    if not _VALUES.isdisjoint(members):
        return "record"
    if own := sorted(_PLACE.intersection(members)):
        raise ValueError(f"it contains {', '.join(own)}, as a record does, but neither value nor value_base64")
    return "message"


def _is_record(text: bytes) -> bool:
    """Parse a line in a file of messages. A line that is not JSON is still a message, and becomes a dead letter."""
    try:
        return _form(text) == "record"
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


def read_raw(path: Path, offset: int = 0) -> Line:
    """Return the whole file as one message's value."""
    return Line(path, None, Message("file", 0, offset, 0, None, _read(path)))


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def _record(file: Path, number: int, text: bytes, offset: int) -> Line:
    line = msgspec.json.decode(text, type=_Line)
    message = Message(
        topic=line.topic,
        partition=line.partition,
        offset=offset if line.offset is None else line.offset,
        timestamp_ms=line.timestamp,
        key=_key(line),
        value=_value(line),
        headers=tuple(_headers(line)),
    )
    return Line(file, number, message, line.offset is None)


def _value(line: _Line) -> bytes | None:
    if line.value_base64 is not msgspec.UNSET:
        if line.value is not msgspec.UNSET:
            raise ValueError("value and value_base64 are both present; use only one of them")
        return None if line.value_base64 is None else _decoded(line.value_base64)
    if line.value is msgspec.UNSET:
        raise ValueError("value or value_base64 is required")
    raw = bytes(line.value)
    if raw == b"null":
        return None
    # A string is the text of the value. For convenience, an object is also accepted: it is the message itself, exactly
    # as written in the line.
    return msgspec.json.decode(raw, type=str).encode() if raw.startswith(b'"') else raw


def _key(line: _Line) -> bytes | None:
    if line.key_base64 is not None:
        if line.key is not None:
            raise ValueError("key and key_base64 are both present; use only one of them")
        return _decoded(line.key_base64)
    return None if line.key is None else line.key.encode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("key_base64, value_base64 or headers_base64 does not contain valid base64") from None


def _headers(line: _Line) -> Iterator[tuple[str, bytes | None]]:
    if line.headers_base64 is not None:
        if line.headers is not None:
            raise ValueError("headers and headers_base64 are both present; use only one of them")
        yield from ((name, None if value is None else _decoded(value)) for name, value in line.headers_base64)
        return
    given = line.headers or ()
    for name, value in given.items() if isinstance(given, dict) else given:
        yield name, None if value is None else value.encode()


def record_line(message: Message) -> bytes:
    """Return a message as a line from which `read_files` restores the same message, except for its topic id."""
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
