"""Hostile messages in four formats, from a seed: names, values, keys, types, statements and bytes.

All of them belong to tables of their own, because a writer is entitled to change or drop its tables. For the same
reason, statements stay in a database of their own: a statement whose table is unknown affects all tables of its
database, or of its source without one. No message proves that its source has another writer, because that stops the
source by design.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from dev.demo.writers import PARTITIONS, Raw
from tests.translator.commands.test_learn import metadata
from tests.translator.dialects.dts_avro import composer
from tests.translator.native.canal_mutants import damaged

NAMES = (
    *(
        "_delta_log",
        "_DELTA_LOG",
        "_cdc",
        "_cdc_pos",
        "metadata",
        "data",
        "..",
        ".",
        "a/b",
        "a\\b",
        "~",
        "~~",
        "%",
        " ",
    ),
    *(
        "x" * 300,
        "y" * 600,
        "\u00e9" * 200,
        "\u202egnp.exe",
        "NUL\x00",
        "line\nbreak",
        "tab\t",
        "\x7f",
        "\u2028",
        "\ufeff",
    ),
    *(
        "CUSTOMERS",
        "Orders",
        "customers.more",
        "orders",
        "a.b",
        "a_b",
        "A.B",
        "*",
        "{table}",
        "$(id)",
        "';--",
        "\U0001f4a9",
    ),
)
SCHEMAS = ("hostile", "_cdc", "shop", "..", "x" * 300, "shop_customers", "Hostile")

VALUES: tuple[Any, ...] = (
    *(
        None,
        "",
        "0",
        "-0",
        "1e1999",
        "1e-1999",
        "9" * 400,
        "NaN",
        "Infinity",
        "0000-00-00",
        "9999999-01-01",
        "x" * 20_000,
    ),
    *(str(2**64), str(-(2**63) - 1), "2023-02-30 25:61:61", "\x00", "\U0001f4a9", "true", "{}", "[]", '"', "\\", "1,5"),
    *(1, 2**70, 1.5e308, True, {}, [], {"a": [1]}),
)
MYSQL_TYPES = (
    "int",
    "bigint unsigned",
    "decimal(65,30)",
    "decimal",
    "datetime(6)",
    "date",
    "time",
    "json",
    "blob",
    "bit(64)",
)
MYSQL_TYPES += (
    "varchar(10)",
    "double",
    "year",
    "enum('a','b')",
    "set('a')",
    "geometry",
    "no such type",
    "x" * 5_000,
    "",
)
STATEMENTS = (
    "DROP TABLE {}",
    "TRUNCATE TABLE {}",
    "ALTER TABLE {} ADD c int",
    "RENAME TABLE {} TO {}",
    "CREATE TABLE {} (",
    ";;",
    "",
)

_LARGEST = 900_000
"""Bytes that a broker accepts by default."""

Body = dict[str, Any]


class HostileWriter:
    """Writes messages for the raw topics of `dev.demo.sources`."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._number = 0
        self._is_exact = False

    def messages(self, count: int) -> Iterator[Raw]:
        """Return this many messages in each format."""
        for _ in range(count):
            for topic, write in _WRITERS.items():
                yield self._message(topic, write)

    def _message(self, topic: str, write: Callable[[HostileWriter], tuple[str, bytes]]) -> Raw:
        self._number += 1
        self._is_exact = False
        chance = self._chance
        found, value = write(self)
        sent: bytes | None = value
        way = chance.random()
        if way < 0.1:
            sent = value if self._is_exact else damaged(chance, value)
        elif way < 0.13:
            sent = chance.choice(
                (None, b"", b"\x00", b"\x00\x00\x00\x00\x07x", b"[" * 5_000, b"{}", b"null", b"\xff" * 90)
            )
        elif way < 0.132:
            sent = b"z" * _LARGEST
        key = chance.choice((None, b"", b"\xff", b"k" * 2_000))
        sent = sent and sent[:_LARGEST]
        return Raw(found or topic, chance.randrange(PARTITIONS), key, sent)

    # -- parts

    def name(self) -> str:
        """Return one of the odd names, and now and then a new one."""
        new = self._chance.random() < 0.003
        return f"new{self._number}" if new else self._chance.choice(NAMES)

    def db(self, name: str) -> str:
        """Return a database in which the name does not belong to a table of the shops."""
        found = self._chance.choice(SCHEMAS)
        return "hostile" if name.lower() in ("customers", "orders") and name.islower() else found

    def row(self) -> Body:
        chance = self._chance
        names = ["id", *(chance.choice((*NAMES, "a", "b")) for _ in range(chance.choice((0, 1, 3))))]
        if chance.random() < 0.003:
            names += [f"c{number}" for number in range(1_000)]
        row = {name: chance.choice(VALUES) for name in names}
        if chance.random() < 0.8:
            row["id"] = str(chance.randrange(20))
        return row

    # -- formats

    def canal(self) -> tuple[str, bytes]:
        chance = self._chance
        name, row = self.name(), self.row()
        types = {column: chance.choice(MYSQL_TYPES) for column in row} | {"id": "int"}
        type_ = chance.choice(("INSERT", "INSERT", "INSERT", "UPDATE", "DELETE", "QUERY", "ALTER", "TRUNCATE", "WHAT"))
        body: Body = {
            "data": [row] * chance.choice((1, 1, 1, 2, 50)),
            "old": None,
            "database": self.db(name),
            "table": name,
            "type": type_,
            "isDdl": False,
            "sql": "",
            "es": chance.choice((1_700_000_000_000, 0, -1, 2**62, "x")),
            "ts": 1_700_000_000_000,
            "id": self._number,
            "mysqlType": types,
            "pkNames": chance.choice((["id"], ["id"], ["id"], None, ["gone"], ["id", "id"], "id", [""])),
        }
        if type_ == "UPDATE":  # a key change of a row with more columns, which any writer may send
            body |= {"data": [row | {"a": "1"}], "old": [{"id": "77"}], "pkNames": ["id"]}
            self._is_exact = True
        elif type_ in ("ALTER", "TRUNCATE", "QUERY"):
            sql = chance.choice(STATEMENTS).replace("{}", f"`{name}`")
            body |= {"data": None, "isDdl": True, "sql": sql, "mysqlType": None, "pkNames": None, "database": "hostile"}
            self._is_exact = True
        return "", _json(body)

    def shareplex(self) -> tuple[str, bytes]:
        chance = self._chance
        name = self.name()
        meta = {
            "op": chance.choice(("ins", "upd", "del", "ddl", "what")),
            "table": chance.choice((f"HOSTILE.{name}", f'"HOSTILE"."{name}"', name, f"A.B.C.{name}", "")),
            "scn": chance.choice(("1", str(self._number), "x", -1)),
            "time": chance.choice(("2023-01-01T00:00:00", "0000-00-00", None)),
        }
        row = self.row()
        members = {"meta": meta, "data": row, "key": chance.choice(({"id": "1"}, row, {}, None))}
        return "", _json({name: member for name, member in members.items() if member is not None})

    def qlik(self) -> tuple[str, bytes]:
        chance = self._chance
        name = self.name()
        schema_id = f"{chance.randrange(60):032X}"
        if chance.random() < 0.2:
            return "raw.qlik.metadata", metadata(
                schema_id, f"H{name}", chance.randrange(3), column=chance.choice(NAMES)
            )
        row = self.row()
        headers = {
            "operation": chance.choice(("INSERT", "UPDATE", "DELETE", "REFRESH", "WHAT")),
            "changeSequence": chance.choice(("20260105080009000000000000000000005", "", "x")),
            "timestamp": chance.choice(("2026-01-05T08:00:09.123", "", "x")),
            "changeMask": chance.choice(("01", "FF", "zz", None)),
            "columnMask": chance.choice(("01", "FF", "zz", None)),
        }
        before = row if headers["operation"] in ("UPDATE", "DELETE") and chance.random() < 0.7 else None
        message = {"data": row, "beforeData": before, "headers": headers}
        head = {"magic": "atMSG", "type": "DT", "headers": None, "messageSchemaId": schema_id, "messageSchema": None}
        return "", _json({**head, "message": message})

    def dts_avro(self) -> tuple[str, bytes]:
        chance = self._chance
        name = self.name()
        number = chance.choice((3, 8, 246, 12, 253, 252, 9_999))
        cells = [
            composer.integer(chance.choice((1, "x", str(2**70)))),
            composer.character(
                chance.choice(("a", b"\xff\xfe", "x" * 5_000)), chance.choice(("utf8mb4", "no such charset"))
            ),
            composer.decimal(chance.choice(("1.5", "1e1999", "NaN")), 10, chance.choice((2, 40_000))),
            composer.timestamp(chance.choice((0, 2**60))),
            composer.binary(b"\x00" * 50),
            None,
        ]
        columns = {column: (number, chance.choice(cells)) for column in self.row()} | {"id": (3, composer.integer(1))}
        operation = chance.choice(("INSERT", "INSERT", "DELETE", "DDL", "BEGIN"))
        if operation == "DDL":
            sql = chance.choice(STATEMENTS).replace("{}", f"`{name}`")
            self._is_exact = True
            return "", composer.compose("DDL", objectName="hostile", afterImages=sql)
        object_name = chance.choice((f"hostile.{name}", name, "", f"a.b.c.{name}", f"hostile.dbo.{name}"))
        return "", composer.row(operation, columns, objectName=object_name)


_WRITERS: Mapping[str, Callable[[HostileWriter], tuple[str, bytes]]] = {
    "raw.canal": HostileWriter.canal,
    "raw.shareplex": HostileWriter.shareplex,
    "raw.qlik": HostileWriter.qlik,
    "raw.dts": HostileWriter.dts_avro,
}


FORMATS = len(_WRITERS)


def _json(body: Body) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
