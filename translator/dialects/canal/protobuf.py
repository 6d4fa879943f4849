"""Convert Canal's own Protobuf records to the flat messages that Canal writes with `flatMessage=true`.

A record is a packet with one batch of entries. Each entry with rows or a statement is converted to one flat message,
with the fields that Canal's converter (MQMessageUtils, 1.1.7) sets. `ts` is missing, because Canal sets it to the time
of the conversion. Field numbers are those of CanalProtocol.proto and EntryProtocol.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from translator.errors import ErrorCode, MessageError, quote, unknown

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}

_PACKET_TYPE, _COMPRESSION, _BODY = 3, 4, 5
_MESSAGES, _NOT_COMPRESSED = 7, frozenset({0, 1})
_BATCH_ID, _ENTRY = 1, 2
_HEADER, _ENTRY_TYPE, _STORED = 1, 2, 3
_EXECUTED, _SCHEMA, _TABLE, _GTID = 6, 8, 9, 13
_EVENT_TYPE, _IS_DDL, _SQL, _ROW = 2, 10, 11, 12
_BEFORE, _AFTER = 1, 2
_SQL_TYPE, _NAME, _IS_KEY, _UPDATED, _IS_NULL, _VALUE, _MYSQL_TYPE = 2, 3, 4, 5, 6, 8, 10

_WITHOUT_CHANGES = {1: "TRANSACTIONBEGIN", 3: "TRANSACTIONEND", 4: "HEARTBEAT", 5: "GTIDLOG"}
_ROW_DATA = 2
_TYPES = dict(
    enumerate(
        (
            *("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME"),
            *("CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT"),
        ),
        start=1,
    )
)

Fields: TypeAlias = Mapping[int, Sequence[Any]]
"""A message's values by field number, each an integer or bytes."""


def flat_messages(value: bytes) -> list[bytes]:
    """Return the flat messages in a record, as JSON.

    Raises:
        MessageError: the record is damaged or compressed, or is not one of Canal's packets.
    """
    packet = _message(value, "$")
    kind, compression = _number(packet, _PACKET_TYPE), _number(packet, _COMPRESSION)
    if kind != _MESSAGES:
        reason = (
            f"the record is not one of Canal's Protobuf packets: packet type {kind}; expected {_MESSAGES} (MESSAGES)"
        )
        raise MessageError(ErrorCode.FRAMING, reason)
    if compression not in _NOT_COMPRESSED:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"the packet has compression {compression}; expected none")
    batch = _part(packet, _BODY, "$.body")
    return [
        flat
        for place, entry in enumerate(batch.get(_ENTRY, ()))
        for flat in _flat(_of_bytes(entry, "$.messages"), _number(batch, _BATCH_ID), f"$.messages[{place}]")
    ]


def _flat(entry: bytes, batch: int, path: str) -> Iterator[bytes]:
    found = _message(entry, path)
    kind = _number(found, _ENTRY_TYPE)
    if kind in _WITHOUT_CHANGES:
        return
    if kind != _ROW_DATA:
        reason = unknown("entry type", kind, (str(one) for one in (_ROW_DATA, *_WITHOUT_CHANGES)))
        raise MessageError(ErrorCode.UNKNOWN_TYPE, reason, path=f"{path}.entryType")
    header, change = _part(found, _HEADER, f"{path}.header"), _part(found, _STORED, f"{path}.storeValue")
    number = _number(change, _EVENT_TYPE)
    flat: dict[str, Any] = {
        "id": batch,
        "database": _text(header, _SCHEMA, path),
        "table": _text(header, _TABLE, path),
        "type": _TYPES.get(number, str(number)),
        "isDdl": bool(_number(change, _IS_DDL)),
        "es": _number(header, _EXECUTED),
        "gtid": _text(header, _GTID, path),
        "sql": _text(change, _SQL, path),
        **dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames")),
    }
    if rows := change.get(_ROW):
        flat |= _rows([_message(_of_bytes(row, path), path) for row in rows], flat["type"], path)
    yield msgspec.json.encode(flat)


def _rows(rows: Sequence[Fields], type_: str, path: str) -> dict[str, Any]:
    """Return the fields of a flat message that describe its rows. The types come from the last row, and the key from
    the first row.
    """
    data, old = [], []
    types: dict[str, Any] = {"mysqlType": {}, "sqlType": {}}
    keys: list[str] | None = None
    for row in rows:
        columns = _columns(row, _BEFORE if type_ == "DELETE" else _AFTER, path)
        data.append({name: cell for name, (cell, _) in columns.items()})
        types["mysqlType"] |= {name: _text(one, _MYSQL_TYPE, path) for name, (_, one) in columns.items()}
        types["sqlType"] |= {name: _signed(_number(one, _SQL_TYPE)) for name, (_, one) in columns.items()}
        if keys is None:
            keys = [name for name, (_, one) in columns.items() if _number(one, _IS_KEY)]
        if type_ == "UPDATE":
            updated = {name for name, (_, one) in columns.items() if _number(one, _UPDATED)}
            before = _columns(row, _BEFORE, path)
            old.append({name: cell for name, (cell, _) in before.items() if name in updated})
    return {"data": data, "old": old or None, "pkNames": keys or None, **types}


def _columns(row: Fields, image: int, path: str) -> dict[str, tuple[str | None, Fields]]:
    """Return an image's cells and columns by name."""
    found: dict[str, tuple[str | None, Fields]] = {}
    for encoded in row.get(image, ()):
        column = _message(_of_bytes(encoded, path), path)
        name = _text(column, _NAME, path)
        if name in found:
            raise MessageError(ErrorCode.INVALID_FIELD, f"two columns have the name {quote(name)}", path=path)
        found[name] = (None if _number(column, _IS_NULL) else _text(column, _VALUE, path)), column
    return found


def _message(data: bytes, path: str) -> Fields:
    """Return a message's fields. Unknown fields are included, because later versions add some."""
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, path)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at, path)
        elif kind == _BYTES or kind in _FIXED:
            size, at = _varint(data, at, path) if kind == _BYTES else (_FIXED[kind], at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise _damaged("the data ends in the middle of a field", path)
        else:
            raise _damaged(f"unknown wire type {kind}", path)
        if not number:
            raise _damaged("field number 0", path)
        fields.setdefault(number, []).append(value)
    return fields


def _varint(data: bytes, at: int, path: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _damaged("the data ends in the middle of a number", path)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise _damaged("a number has more than 64 bits", path)


def _damaged(what: str, path: str) -> MessageError:
    return MessageError(ErrorCode.FRAMING, f"the record is not one of Canal's Protobuf packets: {what}", path=path)


def _number(fields: Fields, number: int) -> int:
    """Return a field's number. If it is repeated, the last value applies. The default is 0."""
    value = fields.get(number, (0,))[-1]
    if isinstance(value, int):
        return value
    raise _damaged(f"field {number} is not a number", "$")


def _signed(value: int) -> int:
    """Return the two's complement of a 64-bit number. Negative numbers are written like this."""
    return value - 2**64 if value >= 2**63 else value


def _part(fields: Fields, number: int, path: str) -> Fields:
    """Return a message within a message."""
    if number not in fields:
        raise _damaged("it is missing", path)
    return _message(_of_bytes(fields[number][-1], path), path)


def _of_bytes(value: int | bytes, path: str) -> bytes:
    if isinstance(value, bytes):
        return value
    raise _damaged("a number in place of a message or a string", path)


def _text(fields: Fields, number: int, path: str) -> str:
    try:
        return _of_bytes(fields.get(number, (b"",))[-1], path).decode()
    except UnicodeDecodeError:
        raise _damaged(f"field {number} is not UTF-8", path) from None
