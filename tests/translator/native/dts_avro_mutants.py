"""Malformed DTS records: cells, fields and bytes changed at random from a seed."""

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias

from tests.translator.dialects.dts_avro.composer import (
    NONE,
    NULL,
    Cell,
    binary,
    binary_geometry,
    character,
    date_time,
    decimal,
    encode,
    fields,
    float_,
    integer,
    local,
    record,
    text,
    text_geometry,
    timestamp,
    zoned,
)
from tests.translator.native.canal_mutants import damaged
from tests.translator.native.misspellings import one_in_avro

Datum: TypeAlias = dict[str, Any]

MYSQL: Sequence[tuple[int, Cell]] = (
    (8, integer(41_111_111, 8)),
    (253, character('é "\\\n\x07\x7f', "utf8mb4")),
    (246, decimal("-1050.10", 6, 2)),
    (12, local(2023, 10, 17, 15, 2, 0, 8)),
    (7, timestamp(1_697_526_120, 350_000)),
    (11, date_time(hour=12, minute=30, second=0)),
    (10, date_time(year=2024, month=2, day=29)),
    (252, binary(b"\x89PNG\xff")),
    (5, float_(4111.1111)),
    (4, float_(1.100000023841858)),
    (16, integer(2**63 - 1)),
    (247, text("open", "ENUM")),
    (245, text('{"a": 1}', "JSON")),
    (255, binary_geometry(b"\1\1\0\0\0" + bytes(16))),
    (254, None),
    (252, character("a long text")),
    (254, binary(bytes(16), "BINARY")),
    (250, character("茶".encode("gbk"), "gbk")),
    (253, character(b"\xff", "binary")),
)
POSTGRESQL: Sequence[tuple[int, Cell]] = (
    (23, integer(1)),
    (16, text("t", "BOOL")),
    (3802, binary(b"{}", "JSON")),
    (1184, zoned("GMT+08:00", year=2023, month=1, day=1, hour=7, minute=2, second=0, millis=120_000)),
    (1700, decimal("12.50")),
    (2950, text("0e2b1c42-5b0c-11ee-8c99-0242ac120002", "UUID")),
    (16_401, text("happy", "MOOD")),
    (1042, character("x", "UTF8")),
)
ORACLE: Sequence[tuple[int, Cell]] = (
    (2, integer(1)),
    (1, character("茶".encode("gb18030"), "ZHS32GB18030")),
    (12, local(2023, 10, 17, 0, 0, 0)),
    (180, local(2023, 10, 17, 15, 2, 0, 120_000_008)),
    (231, zoned("+05:30", year=2023, month=12, day=31, hour=23, minute=2, second=0, millis=7)),
    (183, date_time(day=1, hour=2, minute=3, second=4)),
    (101, float_(0.5)),
)
CHARSETS: Sequence[Cell] = (MYSQL[-2][1], MYSQL[-1][1], ORACLE[1][1])
"""Cells in a charset other than UTF-8."""
SOURCES = (("MySQL", "8.0.28", MYSQL), ("PostgreSQL", "14.8", POSTGRESQL), ("Oracle", "19", ORACLE))
CELLS: Sequence[Cell] = (
    *(None, NONE, NULL, *(cell for _, _, columns in SOURCES for _, cell in columns)),
    *(integer(number) for number in ("0", "-0", "007", "", "+1", "-7", "300", 2**31, 2**63, -(2**63), 2**64, "9" * 70)),
    *(decimal(number) for number in ("0.00", "-0.00", "1e5", ".5", "5.", "00.1", "NaN", "12", "9" * 101)),
    *(float_(number) for number in (0.0, -0.0, 1e-4, 1e16, math.nan, -math.inf, 0.1, 16_777_217.0, 1e39, 5e-324)),
    *(timestamp(*parts) for parts in ((0,), (-1,), (1, 999_999), (1, 10**6), (1, -1), (253_402_300_800,), (2**62,))),
    *(local(2023, 2, 29, 0, 0, 0), local(0, 0, 0, 0, 0, 0), local(1, 1, 1, 0, 0, 0), local(9999, 12, 31, 23, 59, 59)),
    *(local(2023, 1, 1, 24, 0, 0), local(2023, 1, 1, 0, 0, 0, 10**6), local(2023, 1, 1, 0, 0, 0, -1)),
    *(date_time(year=2023), date_time(hour=838, minute=0, second=0), date_time(hour=-1, minute=0, second=0)),
    *(date_time(year=2023, month=1, day=1, millis=0), date_time(hour=1, minute=2), date_time()),
    *(zoned(zone, year=1, month=1, day=1, hour=1, minute=0, second=0) for zone in ("UTC", "GMT", "", "+01:01", "8")),
    *(
        zoned(zone, year=2023, month=3, day=26, hour=2, minute=30, second=0)
        for zone in ("Europe/Berlin", "-24:00", "Z")
    ),
    *(zoned("UTC", year=2023, month=1, day=1), zoned("GMT-03:30", hour=1, minute=2, second=3)),
    *(
        character(sent, name)
        for sent in (b"", b"1", b"\xff", b"a" * 200)
        for name in ("utf8", "utf8mb3", "gbk", "binary")
    ),
    *(character("é", name) for name in ("UTF-8", "Utf8", "latin1", "", "é", "AL32UTF8", "UNICODE")),
    *(
        text(sent)
        for sent in ("", "1", "1.50", "f", "T", "2023-10-17", "12:00:00", "\ud7ff\uffff\U0001f600", "x" * 9000)
    ),
    *(binary(sent) for sent in (b"", b"a", b"ab", b"abc", bytes(range(256)))),
    *(binary_geometry(b"\1\2"), text_geometry("POINT(1 2)")),
)
TAGS = (
    (
        "pk_uk_info",
        ('{"PRIMARY":["a0"]}', '{"PRIMARY":["a0","a2"]}', '{"PRIMARY":["zz"]}', '{"u":["a1"]}', "x", "", "{}"),
    ),
    ("readerThroughoutTime", ("1697526120531", "0", "", "x", "\u0661", "123456789012345", "00000000000007")),
    ("server_id", ("1921057203", "", "é")),
    ("GTID", ("0e2b1c42-5b0c-11ee-8c99-0242ac120002:7", "")),
    ("l_db_name", ("logical", "")),
    ("l_tb_name", ("orders",)),
    ("é", ("ü",)),
)
FIELDS: Sequence[tuple[str, Sequence[Any]]] = (
    ("version", (0, 1, -1, 2**31 - 1)),
    ("id", (0, 2**63 - 1, -7)),
    ("sourceTimestamp", (0, -1, 1, 10**10 - 1, 10**10, 10**14 - 1, 10**14, 2**62)),
    ("sourcePosition", ("", "1@2", "x@1", "1@", "é", "12<->4", "123456789012345678901@7", "1@2@3")),
    ("safeSourcePosition", ("", "é")),
    ("sourceTxid", ("", "0", "4711", "é")),
    ("objectName", (None, "", "shop", "shop.other", "a.b.c", "a.b.c.d", "a..b", "a\\u002Eb.c", "shop.é")),
    ("processTimestamps", (None, [], [1])),
    ("bornTimestamp", (0, -1, 2**63 - 1)),
)
OPERATIONS = ("INSERT", "UPDATE", "DELETE", "INIT")


def common(chance: Random) -> Datum:
    """Return a row as its writer sends it."""
    name, version, columns = chance.choice(SOURCES)
    row = [cell for _, cell in columns]
    operation = chance.choice(OPERATIONS)
    changed = [cell if chance.random() < 0.8 else None for cell in row]
    return record(
        operation,
        source=(name, version),
        sourceTimestamp=chance.randrange(10**9, 2 * 10**9),
        objectName=f"shop.{name}",
        tags={"pk_uk_info": '{"PRIMARY":["a0"]}', "readerThroughoutTime": "1697526120531", "server_id": "7"},
        fields=fields(**{f"a{index}": number for index, (number, _) in enumerate(columns)}),
        beforeImages=row if operation in ("UPDATE", "DELETE") else None,
        afterImages=[row[0], *changed[1:]] if operation != "DELETE" else None,
    )


def mutants(chance: Random) -> Iterator[bytes]:
    """Generate common and damaged records without end."""
    while True:
        datum = common(chance)
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            chance.choice(_CHANGES)(chance, datum)
        value = encode(datum, chance.choice(("v2", "v3")))
        way = chance.random()
        if way < 0.25:
            value = damaged(chance, value) if way < 0.2 else one_in_avro(chance, value)
        yield value


def _images(datum: Datum) -> list[list[Cell]]:
    return [datum[name] for name in ("beforeImages", "afterImages") if isinstance(datum[name], list) and datum[name]]


def _change_cell(chance: Random, datum: Datum) -> None:
    """Change a cell in one image, or the same cell in both."""
    images = _images(datum)
    index, cell = chance.randrange(19), chance.choice(CELLS)
    for image in images if chance.random() < 0.5 else images[-1:]:
        image[index % len(image)] = cell


def _withhold(chance: Random, datum: Datum) -> None:
    """Keep only a few values of one image, perhaps without those of a key."""
    for image in _images(datum)[:: chance.choice((1, -1))][:1]:
        image[:] = [cell if index == 0 or chance.random() < 0.3 else NONE for index, cell in enumerate(image)]


def _change_number(chance: Random, datum: Datum) -> None:
    """Give a column the type number of another, or one that no table lists."""
    if isinstance(datum["fields"], list) and datum["fields"]:
        numbers = [field["dataTypeNumber"] for field in datum["fields"]]
        chance.choice(datum["fields"])["dataTypeNumber"] = chance.choice((*numbers, 1, 2, 3, 13, 20, 100, 600, 77, -1))


def _change_tag(chance: Random, datum: Datum) -> None:
    name, values = chance.choice(TAGS)
    datum["tags"] = {**datum["tags"], name: chance.choice(values)}


def _many_tags(chance: Random, datum: Datum) -> None:
    datum["tags"] = {str(number): "x" for number in range(chance.choice((0, 1, 32, 33)))}


def _change_field(chance: Random, datum: Datum) -> None:
    name, values = chance.choice(FIELDS)
    datum[name] = chance.choice(values)


def _change_source(chance: Random, datum: Datum) -> None:
    source = chance.choice(("MySQL", "DRDS", "MongoDB", "SQLServer", "PostgreSQL", "OTHER"))
    datum["source"] = {"sourceType": source, "version": chance.choice(("", "5", "é"))}


def _change_operation(chance: Random, datum: Datum) -> None:
    datum["operation"] = chance.choice((*OPERATIONS, "DDL", "BEGIN", "HEARTBEAT", "NOOP"))


def _change_image(chance: Random, datum: Datum) -> None:
    name = chance.choice(("beforeImages", "afterImages", "fields"))
    sent = datum[name] or []
    datum[name] = chance.choice((None, "text", [], sent[:-1] if isinstance(sent, list) else None))


def _name_column(chance: Random, datum: Datum) -> None:
    if isinstance(datum["fields"], list) and datum["fields"]:
        chance.choice(datum["fields"])["name"] = chance.choice(("a0", "", 'é"', "A1"))


_CHANGES: Sequence[Callable[[Random, Datum], None]] = (
    *(_change_cell,) * 8,
    *(_change_tag, _change_field, _withhold) * 2,
    *(_change_number, _change_source, _change_operation, _change_image, _name_column, _many_tags),
)
