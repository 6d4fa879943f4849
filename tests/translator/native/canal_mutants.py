"""Malformed Canal messages: cells, members and bytes changed at random from a seed."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias

from tests.translator.native.misspellings import one_in_json

Body: TypeAlias = dict[str, Any]

CELLS = (
    *(None, "", "0", "-0", "00", "1", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("18446744073709551615", "1.5", "1.50", "0.00", "-0.00", ".5", "5.", "1e5", "99999999999.99", "0.001", "-12.3400"),
    *("0000-00-00 00:00:00", "2024-02-29 00:00:00", "2023-02-29 00:00:00", "1900-02-29", "2024-01-01 24:00:00"),
    *("2024-01-01T00:00:00", "2024-01-01 00:00:00.", "2024-01-01 00:00:00.1234567890", "0999-01-01", "12:00:00"),
    *("100:00:00", "-01:00:00", '\u00e9\u0007"\\/\n', "\ud7ff\uffff\U0001f600", "\u007f", " 1", "\u0661", "\x00"),
    *("NaN", "-Infinity"),
)
TYPES = (
    *("timestamp", "json", "time", "float", "double", "bit(1)", "bit(8)", "enum('a','b')", "blob", "int unsigned"),
    *("bigint unsigned", "decimal(5,0)", "decimal(3,3)", "decimal(12,2)", "year", "", "tinyint(1)", "mediumint"),
    *("date", "datetime(6)", "varchar(9)", "geometry", "no such type"),
)
MEMBERS = ("es", "ts", "id", "gtid", "sql", "isDdl", "pkNames", "database", "table", "type", "data", "old", "mysqlType")
VALUES: tuple[Any, ...] = (
    *(
        None,
        0,
        1,
        1000,
        -1,
        10**18 - 1,
        10**18,
        2**63,
        "",
        "x",
        False,
        True,
        [],
        {},
        ["id"],
        ["id", "id"],
        ["nope"],
        1.0,
    ),
)
BYTES = (
    b"0",
    b"-",
    b'"',
    b",",
    b"null",
    b"9",
    b" ",
    b".",
    b"}",
    b"{",
    b"\\u0041",
    b"\xff",
    b"\\/",
    b"]",
    b"[",
    b'"a":1,',
)


def mutants(chance: Random, messages: Sequence[bytes]) -> Iterator[bytes]:
    """Generate damaged forms of these messages without end."""
    while True:
        value = chance.choice(messages)
        way = chance.random()
        if way < 0.55:
            yield _rewritten(chance, value)
        else:
            yield one_in_json(chance, value) if way < 0.65 else damaged(chance, value)


def with_two_images(value: bytes) -> bytes:
    """Return an update whose `old` has all columns, as DTS sends it."""
    body: Body = json.loads(value)
    body["old"] = [{**row, **(changed or {})} for row, changed in zip(body["data"], body["old"], strict=True)]
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def damaged(chance: Random, value: bytes) -> bytes:
    """Return the message with bytes changed, removed or added."""
    damaged = bytearray(value)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(damaged) + 1)
        kind = chance.random()
        if kind < 0.4 and at < len(damaged):
            damaged[at] = chance.randrange(256)
        elif kind < 0.7:
            del damaged[at : at + chance.choice((1, 2, 5, 40))]
        else:
            damaged[at:at] = chance.choice(BYTES)
    return bytes(damaged)


def _rewritten(chance: Random, value: bytes) -> bytes:
    body: Body = json.loads(value)
    for _ in range(chance.randint(1, 3)):
        chance.choice(_CHANGES)(chance, body)
    style = chance.random()
    separators = (", ", ": ") if 0.2 < style < 0.4 else (",", ":")
    text = json.dumps(body, separators=separators, ensure_ascii=style < 0.2)
    return text.encode("utf-8", "surrogatepass")


def _rows(body: Body, member: str) -> list[Body]:
    rows = body.get(member)
    return [row for row in rows if isinstance(row, dict) and row] if isinstance(rows, list) else []


def _change_cell(chance: Random, body: Body) -> None:
    for row in _rows(body, "data")[:1]:
        row[chance.choice([*row])] = chance.choice(CELLS)


def _change_old_cell(chance: Random, body: Body) -> None:
    for row in _rows(body, "data")[:1]:
        old = _rows(body, "old") or [{}]
        old[0][chance.choice([*row])] = chance.choice((*CELLS, *row.values()))
        body["old"] = old


def _change_cell_type(chance: Random, body: Body) -> None:
    for row in _rows(body, chance.choice(("data", "old")))[:1]:
        row[chance.choice([*row])] = chance.choice((0, 1, -1, 1.5, -0.0, 1e300, 10**20, True, False, [1], {"a": 1}))


def _drop_types(chance: Random, body: Body) -> None:
    body["mysqlType"] = chance.choice((None, {}))
    if chance.random() < 0.5:
        del body["mysqlType"]


def _swap_row_text(chance: Random, body: Body) -> None:
    """Swap the images, or put all columns in `old`."""
    for row in _rows(body, "data")[:1]:
        body["old"] = [{**row, chance.choice([*row]): chance.choice(CELLS)}]


def _change_old(chance: Random, body: Body) -> None:
    body["old"] = chance.choice((None, [], [None], [{}], _rows(body, "data"), [None, {}], [{"x": "y"}], "x"))


def _add_row(chance: Random, body: Body) -> None:
    for row in _rows(body, "data")[:1]:
        body["data"] = [*body["data"], dict(row)]
        if isinstance(body.get("old"), list):
            body["old"] = [
                *body["old"],
                {name: chance.choice(CELLS) for name in chance.sample([*row], min(2, len(row)))},
            ]


def _change_member(chance: Random, body: Body) -> None:
    body[chance.choice(MEMBERS)] = chance.choice(VALUES)


def _drop_member(chance: Random, body: Body) -> None:
    body.pop(chance.choice(MEMBERS), None)


def _move_member(chance: Random, body: Body) -> None:
    if body:
        name = chance.choice([*body])
        body[name] = body.pop(name)


def _change_type(chance: Random, body: Body) -> None:
    types = body.get("mysqlType")
    if isinstance(types, dict) and types:
        types[chance.choice([*types])] = chance.choice(TYPES)


def _change_operation(chance: Random, body: Body) -> None:
    body["type"] = chance.choice(("INSERT", "UPDATE", "DELETE", "INIT", "DDL"))
    if body["type"] == "DELETE" and chance.random() < 0.5:
        body["old"], body["data"] = body.get("data"), chance.choice((None, [], [{}]))


def _drop_column(chance: Random, body: Body) -> None:
    for row in _rows(body, "data")[:1]:
        row.pop(chance.choice([*row]))


def _shuffle_row(chance: Random, body: Body) -> None:
    for row in _rows(body, chance.choice(("data", "old")))[:1]:
        name = chance.choice([*row])
        row[name] = row.pop(name)


def _name_writer(chance: Random, body: Body) -> None:
    body.update(chance.choice(({"_tidb": {"commitTs": 12}}, {"_tidb": {}}, {"pgType": {}}, {"opType": "U"})))


_CHANGES: Sequence[Callable[[Random, Body], None]] = (
    *(_change_cell,) * 6,
    *(_change_old_cell,) * 2,
    *(_change_type,) * 2,
    *(_change_cell_type, _drop_types) * 2,
    *(_swap_row_text, _change_old, _add_row, _change_member, _drop_member, _move_member),
    *(_change_operation, _drop_column, _shuffle_row, _name_writer),
)
