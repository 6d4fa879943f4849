"""Malformed SharePlex messages: cells, members and bytes changed at random from a seed."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from tests.translator.native.canal_mutants import CELLS, Body, damaged
from tests.translator.native.misspellings import one_in_json

NUMBERS = (0, 1, -1, 1974, 1.5, -0.25, 10**17, 10**18, 2**63, 2**64, 1e22, 1e-7, True, False, [1], {"a": 1})
META: tuple[tuple[str, Sequence[Any]], ...] = (
    (
        "op",
        (
            *("ins", "upd", "del", "INSERT", "UPDATE", "DELETE", "INS", "UPD", "DEL", "Upd"),
            *("TRUNCATE", "update before", "x", "add", 1),
        ),
    ),
    ("table", ("SHOP.orders", "orders", '"Shop"."orders"', "A.B.C", "", ".", None, "SHOP.other")),
    (
        "time",
        ("2026-01-05T08:00:09", "2026-01-05 08:00:09.5Z", "2026-03-29T02:30:00", "2026-01-05T08:00:09.123456789", "x"),
    ),
    ("posttime", ("2026-01-05T08:00:09+02:00", "2026-10-25T02:30:00", "", None, 7)),
    ("scn", ("1", "14589063118712", 14589063118712, "x", "", "123456789012345678901", 1.5)),
    ("host", ("h1", "h\u00e9", "", None)),
    ("trans", ("7.0.411499", 7, "", 'a"b')),
    ("seq", (1, 2, 0, -1, "3", 10**18)),
    ("size", (2, 1, 11, None)),
    ("idx", ("1/2", "2/11", "1/11", "x")),
    ("userid", (84, "84", "", "u\\u")),
    ("rowid", ("AAATGpAAIAAItcIAAA", "", 1)),
    ("more", (1,)),
)


def mutants(chance: Random, messages: Sequence[bytes]) -> Iterator[bytes]:
    """Generate damaged forms of these messages without end."""
    while True:
        value = chance.choice(messages)
        way = chance.random()
        if way < 0.7:
            yield _rewritten(chance, value)
        else:
            yield one_in_json(chance, value) if way < 0.8 else damaged(chance, value)


def _rewritten(chance: Random, value: bytes) -> bytes:
    body: Body = json.loads(value)
    for _ in range(chance.randint(1, 3)):
        chance.choice(_CHANGES)(chance, body)
    style = chance.random()
    separators = (", ", ": ") if 0.2 < style < 0.4 else (",", ":")
    text = json.dumps(body, separators=separators, ensure_ascii=style < 0.2)
    ending = chance.choice(("}", "}", " }", "  }"))
    return (text[:-1] + ending).encode("utf-8", "surrogatepass")


def _objects(body: Body) -> list[Body]:
    return [body[name] for name in ("data", "key") if isinstance(body.get(name), dict) and body[name]]


def _change_cell(chance: Random, body: Body) -> None:
    for cells in _objects(body)[:1] if chance.random() < 0.7 else _objects(body):
        cells[chance.choice([*cells])] = chance.choice((*CELLS, *NUMBERS))


def _change_meta(chance: Random, body: Body) -> None:
    if isinstance(body.get("meta"), dict):
        name, values = chance.choice(META)
        body["meta"][name] = chance.choice(values)


def _count_transaction(chance: Random, body: Body) -> None:
    if isinstance(body.get("meta"), dict):
        body["meta"] |= {"trans": "7.0.4", "seq": chance.randint(1, 3), "size": 3}
        if chance.random() < 0.5:
            body["meta"]["idx"] = f"{body['meta']['seq']}/3"


def _change_operation(chance: Random, body: Body) -> None:
    if isinstance(body.get("meta"), dict):
        body["meta"]["op"] = chance.choice(("ins", "upd", "del"))
        if body["meta"]["op"] != "upd":
            body.pop("key", None)


def _add_column(chance: Random, body: Body) -> None:
    for cells in _objects(body):
        cells[chance.choice(("id", "column_1", "column_2", "column_3", "column_9", "more", "m\u00f6re"))] = (
            chance.choice((*CELLS, *NUMBERS))
        )


def _widen_key(chance: Random, body: Body) -> None:
    if isinstance(body.get("key"), dict) and isinstance(body.get("data"), dict):
        body["key"] |= {name: chance.choice((cell, "x")) for name, cell in body["data"].items()}


def _change_member(chance: Random, body: Body) -> None:
    body[chance.choice(("meta", "data", "key", "type"))] = chance.choice((None, {}, [], "x", {"id": 1}))


def _move_member(chance: Random, body: Body) -> None:
    name = chance.choice([*body])
    body[name] = body.pop(name)


def _drop_column(chance: Random, body: Body) -> None:
    for cells in _objects(body)[:1]:
        cells.pop(chance.choice([*cells]))


_CHANGES: Sequence[Callable[[Random, Body], None]] = (
    *(_change_cell,) * 5,
    *(_change_meta,) * 4,
    *(_add_column, _widen_key, _change_operation) * 2,
    *(_count_transaction, _change_member, _move_member, _drop_column),
)
