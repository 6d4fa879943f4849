"""Malformed Qlik messages: cells, masks, headers, layouts and bytes changed at random from a seed."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from tests.translator.native.canal_mutants import CELLS, Body, damaged
from tests.translator.native.misspellings import one_in_json
from tests.translator.native.shareplex_mutants import NUMBERS

TYPES: Mapping[str, tuple[str, int, int, Sequence[Any]]] = {
    "id": ("INT4", 0, 0, (7, 8, 2**31 - 1)),
    "name": ("STRING", 0, 0, ("new", "caf\u00e9", "")),
    "price": ("NUMERIC", 12, 2, ("12.50", "-0.01", 12.25)),
    "at": ("DATETIME", 0, 6, ("2026-01-05T08:00:09.123456", "2026-01-05 08:00:09")),
    "day": ("DATE", 0, 0, ("2026-01-05",)),
    "flag": ("BOOLEAN", 0, 0, (True, False, 1)),
    "raw": ("BYTES", 0, 0, ("00FF", "")),
    "ratio": ("REAL8", 0, 0, (0.5, -0.0, 0.0, 1e22)),
    "big": ("UINT8", 0, 0, (18446744073709551615, "7")),
    "any": ("NUMERIC", 0, 0, ("1.50", 3)),
}
"""The columns of the table: type, precision, scale, and common cells."""

IDS = ("8FB9D3C10EA4B25751DF9CC8318F0A02", "A" * 32, "B" * 32)
"""Ids of known metadata: of the table, of one with a LOB and gaps in its ordinals, and of one without a key."""
UNKNOWN_TYPE_ID = "D" * 32
"""Id of known metadata with an unknown column type."""
UNKNOWN_ID = "C" * 32

HEADERS: Mapping[str, Sequence[Any]] = {
    "operation": ("INSERT", "UPDATE", "DELETE", "REFRESH", "READ", "update", "UPSERT", "", None, 1),
    "changeSequence": (
        "20260105080009000000000000000000005",
        "20260229080009000000000000000000005",
        "100",
        "",
        None,
        7,
    ),
    "timestamp": (
        *(
            "2026-01-05T08:00:09.123",
            "2026-01-05 08:00:09Z",
            "2026-01-05T08:00:09+02:00",
            "1969-12-31T23:59:59.9999999",
        ),
        *("2026-02-30T08:00:09", "0999-01-05T08:00:09", "2026-01-05T08:00:09.", "2026-01-05T24:00:00", "x", "", None),
        *(1000, 1.5, True, 10**17),
    ),
    "streamPosition": ("log.000001:1", "", None, 'a"b', 5, "\u00e9"),
    "transactionId": ("0000000000000000000000000006000A", "", None, "\u00e9", 7),
    "changeMask": ("00", "02", "01FF", "0x3", "3FF", "7FF", "zz", "", None, 1),
    "columnMask": ("03FF", "01FF", "0x3ff", "3FE", "07FF", "00", "x", "", None, True),
    "transactionEventCounter": (1, 2**63 - 1, 2**63, 0, -1, 1.0, "1", None, True),
    "transactionLastEvent": (True, False, None, "true", 1),
    "externalSchemaId": (None, "7", "", 3),
    "schema": ("SHOP", "", None, "S\u00e9", 1),
    "table": ("ORDERS", "attrep_status", "OTHER", "", None, 1),
    "more": ("x", None),
}

TABLE_KEY = b"SHOP+ORDERS"
KEYS = (
    *(None, b"", b'{"id":7}', b'{"id":7,"name":"x"}', b'{ "id" : 7 }', b'{"nope":1}', b"{}", b'{"id":7,"id":7}'),
    *(
        b'{"id":}',
        b'{"\\u0069d":7}',
        b'{"id":{}}',
        *(TABLE_KEY,) * 20,
        b"SHOP+attrep_x",
        b"SHOP",
        b"+",
        b"7",
        b"\xff",
        b"{\xff",
    ),
)
SEPARATORS = ((",", ":"), (",", ":"), (", ", ": "), (",", ":\t"))
"""The spellings of C libraries. It is unknown which of them Replicate uses."""


def metadata() -> Iterator[Body]:
    """Return the metadata messages of `IDS` and `UNKNOWN_TYPE_ID`."""
    ids = (*IDS, UNKNOWN_TYPE_ID)
    columns = {
        name: {"ordinal": ordinal, "type": type_, "precision": precision, "scale": scale}
        for ordinal, (name, (type_, precision, scale, _)) in enumerate(TYPES.items(), 1)
    }
    keyed = columns | {"id": columns["id"] | {"primaryKeyPosition": 1}}
    gaps = {name: column | {"ordinal": 2 * column["ordinal"]} for name, column in keyed.items()}
    lob = gaps | {"name": gaps["name"] | {"type": "NCLOB", "primaryKeyPosition": 2}}
    odd = keyed | {"raw": keyed["raw"] | {"type": "XML"}}
    for schema_id, told, version in zip(ids, (keyed, lob, columns, odd), (1, 2, 3, 1), strict=True):
        yield enveloped(
            {
                "schemaId": schema_id,
                "lineage": {"server": "s", "task": "t", "schema": "SHOP", "table": "ORDERS", "tableVersion": version},
                "tableStructure": {"tableColumns": told},
                "dataSchema": "{}",
            },
            schema_id,
            "MD",
        )


def enveloped(message: object, schema_id: object = None, kind: str = "DT") -> Body:
    """Return a message in the Replicate envelope."""
    head = {"magic": "atMSG", "type": kind, "headers": None, "messageSchemaId": schema_id, "messageSchema": None}
    return {**head, "message": message}


def common(chance: Random) -> Body:
    """Return a message as a task writes it."""
    row = {name: chance.choice(cells) for name, (_, _, _, cells) in TYPES.items()}
    operation = chance.choice(("INSERT", "UPDATE", "UPDATE", "DELETE", "REFRESH"))
    headers = {name: values[0] for name, values in HEADERS.items()} | {"operation": operation, "columnMask": "03FF"}
    for name in ("externalSchemaId", "schema", "table", "more"):
        del headers[name]
    before = None
    if operation == "UPDATE":
        changed = chance.sample([name for name in row if name != "id"], 2)
        before = row | {name: chance.choice((None, *TYPES[name][3])) for name in changed}
        headers["changeMask"] = f"{sum(1 << [*row].index(name) for name in changed):04X}"
    if operation == "REFRESH":
        headers |= dict.fromkeys(("changeSequence", "timestamp", "streamPosition", "transactionId"), "")
        headers |= {"changeMask": None, "columnMask": None}
    body = {"data": row, "beforeData": before, "headers": headers}
    return body if chance.random() < 0.2 else enveloped(body, chance.choice((None, IDS[0], IDS[0], *IDS, UNKNOWN_ID)))


def messages(chance: Random) -> Iterator[tuple[bytes, bytes | None]]:
    """Generate values with Kafka keys without end, some common and most damaged."""
    while True:
        body = common(chance)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            chance.choice(_CHANGES)(chance, body)
        value = spelled(chance, body)
        way = chance.random()
        if way >= 0.75:
            value = one_in_json(chance, value) if way < 0.85 else damaged(chance, value)
        yield value, chance.choice((None, *KEYS))


def spelled(chance: Random, body: Body) -> bytes:
    """Return a message in one of the spellings of JSON."""
    indent = "\t" if chance.random() < 0.1 else None
    ascii_alone = chance.random() < 0.1
    text = json.dumps(body, separators=chance.choice(SEPARATORS), ensure_ascii=ascii_alone, indent=indent)
    return text.encode("utf-8", "surrogatepass")


def _message(body: Body) -> Body:
    message = body.get("message", body)
    return message if isinstance(message, dict) else {}


def _rows(body: Body) -> list[Body]:
    rows = (_message(body).get(name) for name in ("data", "beforeData"))
    return [row for row in rows if isinstance(row, dict) and row]


def _change_cell(chance: Random, body: Body) -> None:
    for row in _rows(body)[:: chance.choice((1, 1, -1))][: chance.randint(1, 2)]:
        row[chance.choice([*row])] = chance.choice((*CELLS, *NUMBERS))


def _change_header(chance: Random, body: Body) -> None:
    headers = _message(body).get("headers")
    if isinstance(headers, dict):
        name = chance.choice([*HEADERS])
        headers[name] = chance.choice(HEADERS[name])


def _drop_header(chance: Random, body: Body) -> None:
    headers = _message(body).get("headers")
    if isinstance(headers, dict) and headers:
        del headers[chance.choice([*headers])]


def _withhold(chance: Random, body: Body) -> None:
    """Withhold columns: clear their bits, and set null in both rows, sometimes not in all."""
    headers = _message(body).get("headers")
    if not isinstance(headers, dict):
        return
    mask = 0x3FF
    doubled = body.get("messageSchemaId") == IDS[1]
    for place, name in chance.sample([*enumerate(TYPES)], chance.randint(1, 4)):
        mask &= ~(1 << place)
        for row in _rows(body):
            if name in row and chance.random() < 0.97:
                row[name] = None
    headers["columnMask"] = f"{mask:X}"
    if doubled:
        headers["columnMask"] = f"{sum(1 << 2 * place + 1 for place in range(10) if mask >> place & 1):x}"


def _double_masks(chance: Random, body: Body) -> None:
    """Return the masks of a table whose ordinals have gaps."""
    headers = _message(body).get("headers")
    if isinstance(headers, dict) and "messageSchemaId" in body:
        body["messageSchemaId"] = IDS[1]
        headers |= {"changeMask": chance.choice(("0008", "80000", "FFFFF")), "columnMask": "AAAAA"}
        headers["columnMask"] = chance.choice(("FFFFF", "AAAAA", "2AAAA"))


def _change_section(chance: Random, body: Body) -> None:
    message = _message(body)
    rows = _rows(body)
    some = [dict.fromkeys(row) for row in rows] + [dict(row) for row in rows]
    message[chance.choice(("data", "beforeData", "headers"))] = chance.choice((None, {}, [], "x", *some))


def _swap_sections(chance: Random, body: Body) -> None:
    message = _message(body)
    if "data" in message and "beforeData" in message:
        message["data"], message["beforeData"] = message["beforeData"], message["data"]


def _drop_member(chance: Random, body: Body) -> None:
    members = chance.choice((_message(body), _message(body), body))
    if members:
        del members[chance.choice([*members])]


def _move_member(chance: Random, body: Body) -> None:
    members = chance.choice((body, _message(body), *_rows(body), _message(body).get("headers")))
    if isinstance(members, dict) and members:
        name = chance.choice([*members])
        members[name] = members.pop(name)


def _drop_column(chance: Random, body: Body) -> None:
    name = chance.choice([*TYPES])
    for row in _rows(body)[:: chance.choice((1, -1))][: chance.randint(1, 2)]:
        row.pop(name, None)


def _add_column(chance: Random, body: Body) -> None:
    for row in _rows(body)[: chance.randint(1, 2)]:
        row[chance.choice(("more", "m\u00f6re", 'm"ore'))] = chance.choice((*CELLS, *NUMBERS))


def _change_envelope(chance: Random, body: Body) -> None:
    name, values = chance.choice(
        (
            ("messageSchemaId", (*IDS, UNKNOWN_ID, None, "", "registry/1", "x" * 129, 1)),
            ("messageSchema", ("", "{}", None, 1)),
            ("headers", (None, {}, {"a": "b"})),
            ("type", ("DT", "MD", "x")),
            ("magic", ("atMSG", "x")),
            ("table", ("ORDERS", None)),
        )
    )
    members = body if chance.random() < 0.9 else _message(body)
    members[name] = chance.choice(values)


_CHANGES: Sequence[Callable[[Random, Body], None]] = (
    *(_change_cell,) * 5,
    *(_change_header,) * 6,
    *(_withhold,) * 4,
    *(_double_masks,) * 2,
    *(_change_section, _swap_sections, _drop_member, _move_member, _drop_column, _add_column),
    *(_change_envelope, _drop_header),
)
