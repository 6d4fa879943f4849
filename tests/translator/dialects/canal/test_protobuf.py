"""Canal's Protobuf, written by hand. `tests/real_canal/test_protobuf.py` compares real records with Canal's JSON."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest

from translator.dialects.canal.decode import Canal
from translator.dialects.canal.options import Options
from translator.dialects.canal.protobuf import flat_messages
from translator.errors import ConfigError, ErrorCode, MessageError
from translator.message import Changes, Message, RowChange, Setup, Skip, TableName

Value = int | str | bytes


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def _encoded(*fields: tuple[int, Value]) -> bytes:
    written = b""
    for number, value in fields:
        if isinstance(value, int):
            written += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            written += _varint(number << 3 | 2) + _varint(len(data)) + data
    return written


def _column(name: str, value: str | None, *, key: bool = False, updated: bool = False, type_: str = "int") -> bytes:
    cell: tuple[int, Value] = (6, 1) if value is None else (8, value)
    return _encoded((2, 4), (3, name), (4, int(key)), (5, int(updated)), cell, (10, type_))


def _row(before: Iterable[bytes] = (), after: Iterable[bytes] = ()) -> bytes:
    return _encoded(*((1, column) for column in before), *((2, column) for column in after))


def _entry(event_type: int, *rows: bytes, sql: str = "", ddl: bool = False, kind: int = 2) -> bytes:
    header = _encoded((2, "log.1"), (3, 4), (6, 1_700_000_000_000), (8, "shop"), (9, "orders"), (13, "0-1-7"))
    change = _encoded((2, event_type), (10, int(ddl)), (11, sql), *((12, row) for row in rows))
    return _encoded((1, header), (2, kind), (3, change))


def _packet(*entries: bytes, kind: int = 7, compression: int = 1) -> bytes:
    return _encoded((2, 1), (3, kind), (4, compression), (5, _encoded((1, 9), *((2, entry) for entry in entries))))


UPDATE = _entry(
    2,
    _row(
        [_column("id", "1", key=True), _column("n", "5"), _column("t", None, type_="text")],
        [_column("id", "1", key=True), _column("n", None, updated=True), _column("t", "ä", updated=True, type_="text")],
    ),
)
DELETE = _entry(3, _row([_column("id", "2", key=True), _column("n", "6"), _column("t", "", type_="text")]))
DROPPED = _entry(6, sql="DROP TABLE orders", ddl=True)
BEGIN, END, HEARTBEAT = (_entry(1, kind=kind) for kind in (1, 3, 4))
RECORD = _packet(BEGIN, UPDATE, DELETE, DROPPED, END, HEARTBEAT)


def _decode(value: bytes) -> object:
    return Canal(Setup("shop"), Options(protobuf=True)).decode(Message("raw", 0, 0, 0, None, value))


def test_a_batch() -> None:
    """Rows and statements become changes in order. Marks of transactions and heartbeats have none."""
    outcome = _decode(RECORD)
    assert isinstance(outcome, Changes)
    update, delete, dropped = outcome.changes
    assert isinstance(update, RowChange)
    assert isinstance(delete, RowChange)
    assert ("u", {"n": 5, "t": None}, {"id": 1, "n": None, "t": "ä"}) == (update.op, update.before, update.after)
    assert ("d", {"id": 2, "n": 6, "t": ""}, None) == (delete.op, delete.before, delete.after)
    assert (("id",), TableName("shop", None, "orders")) == (update.key_columns, update.table)
    assert not isinstance(dropped, RowChange)


def test_a_batch_without_changes() -> None:
    assert Skip("transaction_mark") == _decode(_packet(BEGIN, END))


def test_the_tables_of_a_batch() -> None:
    dialect = Canal(Setup("shop"), Options(protobuf=True))
    tables = dialect.tables(Message("raw", 0, 0, 0, None, RECORD))
    assert {TableName("shop", None, "orders")} == {*tables}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b'{"type":"INSERT"}', ErrorCode.FRAMING),
        (b"\xff" * 40, ErrorCode.FRAMING),
        (_packet(UPDATE, kind=3), ErrorCode.FRAMING),
        (_packet(UPDATE, compression=3), ErrorCode.UNSUPPORTED_SHAPE),
        (_packet(_entry(1, kind=9)), ErrorCode.UNKNOWN_TYPE),
        (_packet(_entry(99)), ErrorCode.UNKNOWN_OPERATION),
        (_packet(_entry(1, _row((), [_column("a", "1"), _column("a", "2")]))), ErrorCode.INVALID_FIELD),
        (_packet(_entry(1, _row((), [_encoded((3, b"\xff"), (8, "1"))]))), ErrorCode.FRAMING),
    ],
    ids=[
        "JSON",
        "noise",
        "another packet",
        "compressed",
        "another entry",
        "another event",
        "name twice",
        "not UTF-8",
    ],
)
def test_what_is_rejected(value: bytes, code: ErrorCode) -> None:
    with pytest.raises(MessageError) as caught:
        _decode(value)
    assert caught.value.code == code


def test_damage_is_never_an_exception_of_another_kind() -> None:
    """Each truncation is rejected. Each changed byte gives a result or a dead letter."""
    for end in range(1, len(RECORD)):
        with pytest.raises(MessageError):
            flat_messages(RECORD[:end])
    for place in range(len(RECORD)):
        for bit in range(8):
            damaged = bytearray(RECORD)
            damaged[place] ^= 1 << bit
            with suppress(MessageError):
                _decode(bytes(damaged))


@pytest.mark.parametrize(
    "options", [Options(profile="dts", protobuf=True), Options(protobuf=True, newline_batches=True)]
)
def test_options_that_contradict(options: Options) -> None:
    with pytest.raises(ConfigError, match="protobuf"):
        Canal(Setup("shop"), options)
