"""Compose DTS records, because no real bytes are available: only decoded text was ever published.

`python -m tests.translator.dialects.dts_avro.composer` writes `message.bin` of the cases, and a test checks that they
are up to date. The schema is our own. `test_dts_avro_reader` compares it with the vendor's list of fields, enums and
branches.
"""

import io
from pathlib import Path
from typing import Any

import fastavro

from translator.dialects.dts_avro.schema import NAMESPACE, V2, V3

CASES = Path(__file__).parents[1] / "cases" / "dts_avro"

Cell = tuple[str, Any] | None


def integer(value: int | str, width: int = 4) -> Cell:
    return f"{NAMESPACE}.Integer", {"precision": width, "value": str(value)}


def character(text: str | bytes, charset: str = "utf8mb4") -> Cell:
    data = text.encode() if isinstance(text, str) else text
    return f"{NAMESPACE}.Character", {"charset": charset, "value": data}


def decimal(value: str, precision: int = 10, scale: int = 2) -> Cell:
    return f"{NAMESPACE}.Decimal", {"value": value, "precision": precision, "scale": scale}


def float_(value: float) -> Cell:
    return f"{NAMESPACE}.Float", {"value": value, "precision": 0, "scale": 0}


def timestamp(seconds: int, micros: int = 0) -> Cell:
    return f"{NAMESPACE}.Timestamp", {"timestamp": seconds, "millis": micros}


_COMPONENTS = ("year", "month", "day", "hour", "minute", "second", "millis")


def _parts(components: dict[str, int]) -> dict[str, int | None]:
    return {name: components.get(name) for name in _COMPONENTS}


def date_time(**components: int) -> Cell:
    return f"{NAMESPACE}.DateTime", _parts(components)


def local(year: int, month: int, day: int, hour: int, minute: int, second: int, millis: int = 0) -> Cell:
    values = (year, month, day, hour, minute, second, millis)
    return f"{NAMESPACE}.DateTime", dict(zip(_COMPONENTS, values, strict=True))


def zoned(timezone: str, **components: int) -> Cell:
    return f"{NAMESPACE}.TimestampWithTimeZone", {"value": _parts(components), "timezone": timezone}


def binary_geometry(value: bytes) -> Cell:
    return f"{NAMESPACE}.BinaryGeometry", {"type": "GEOMETRY", "value": value}


def text_geometry(value: str) -> Cell:
    return f"{NAMESPACE}.TextGeometry", {"type": "GEOMETRY", "value": value}


def binary(value: bytes, type_: str = "BLOB") -> Cell:
    return f"{NAMESPACE}.BinaryObject", {"type": type_, "value": value}


def text(value: str, type_: str = "TEXT") -> Cell:
    return f"{NAMESPACE}.TextObject", {"type": type_, "value": value}


# fastavro writes plain text as EmptyObject, because no other branch of an image element accepts it.
NULL: Any = "NULL"
NONE: Any = "NONE"


def fields(**numbers: int) -> list[dict[str, Any]]:
    return [{"name": name, "dataTypeNumber": number} for name, number in numbers.items()]


def record(operation: str, **given: Any) -> dict[str, Any]:
    """Return a record of a MySQL source in the form published in October 2023. `given` overrides fields."""
    source_type, version = given.pop("source", ("MySQL", "8.0.28"))
    return {
        "version": 0,
        "id": 118_446,
        "sourceTimestamp": 1_697_526_120,
        "sourcePosition": "72469@78",
        "safeSourcePosition": "72347@78",
        "sourceTxid": "0",
        "source": {"sourceType": source_type, "version": version},
        "operation": operation,
        "objectName": "shop.orders",
        "processTimestamps": None,
        "tags": {"readerThroughoutTime": "1697526120531", "server_id": "1921057203", "thread_id": "4711"},
        "fields": None,
        "beforeImages": None,
        "afterImages": None,
        "bornTimestamp": 1_697_526_120,
        **given,
    }


def encode(datum: dict[str, Any], version: str) -> bytes:
    """Return the bytes of a record in the schema of a version."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {"v2": V2, "v3": V3}[version], datum)
    return out.getvalue()


def compose(operation: str, *, schema: str = "v3", **given: Any) -> bytes:
    """Return the bytes of a record (see `record`)."""
    return encode(record(operation, **given), schema)


def row(operation: str, columns: dict[str, tuple[int, Cell]], **given: Any) -> bytes:
    """Return a record with one image: column name -> (dataTypeNumber, cell)."""
    image = [cell for _, cell in columns.values()]
    side = "beforeImages" if operation == "DELETE" else "afterImages"
    numbers = fields(**{name: number for name, (number, _) in columns.items()})
    sent: dict[str, Any] = {"fields": numbers, side: image, **given}
    return compose(operation, **sent)


# -- the cases

_ORDERS = fields(id=8, name=253, amount=246, created=7, updated=12, note=15, state=247, photo=252, born=10, at=11)
_ORDER: list[Cell] = [
    integer(1, 8),
    character("茶 Tee"),
    decimal("348.00", 5, 2),
    timestamp(1_697_526_120, 0),
    local(2023, 10, 17, 15, 2, 0),
    None,
    text("open", "ENUM"),
    binary(b"\x89PNG"),
    date_time(year=2023, month=10, day=17),
    date_time(hour=-12, minute=-30, second=0, millis=-500_000),
]
_CHANGED: list[Cell] = [_ORDER[0], _ORDER[1], decimal("1050.00", 6, 2), *_ORDER[3:6], text("paid", "ENUM"), *_ORDER[7:]]
_KEYED = {
    "pk_uk_info": '{"PRIMARY":["id"],"uk_name":["name"]}',
    "metaVersion": "3091",
    "readerThroughoutTime": "1697526120531",
    "server_id": "1921057203",
    "thread_id": "4711",
}
_DDL_TAGS = {
    "GTID": "0e2b1c42-5b0c-11ee-8c99-0242ac120002:7",
    "lowerCaseTableNames": "false",
    "server_id": "1921057203",
}
_DDL = "ALTER TABLE orders ADD COLUMN note text"
_POSTGRESQL = fields(id=23, ok=16, doc=3802, at=1184, price=1700, owner=2950, mood=16_401, raw=17)
_ORACLE = fields(ID=2, NAME=1, CREATED=12, AT=180, WHEN=181, SPAN=183, RATE=100)


def cases() -> dict[str, bytes]:
    """Return case folder -> message."""
    rows: dict[str, Any] = {"fields": _ORDERS, "tags": _KEYED}
    return {
        "mysql_insert": compose("INSERT", afterImages=_ORDER, **rows),
        "mysql_update": compose("UPDATE", beforeImages=_ORDER, afterImages=_CHANGED, **rows),
        "mysql_delete": compose("DELETE", beforeImages=_ORDER, **rows),
        "mysql_delete_v2": compose("DELETE", schema="v2", beforeImages=_ORDER, **rows),
        "mysql_init": compose("INIT", afterImages=_ORDER, **rows),
        "mysql_ddl": compose("DDL", objectName="shop", tags=_DDL_TAGS, afterImages=_DDL),
        "mysql_no_key": row("INSERT", {"a": (3, integer(7)), "b": (1, None)}),
        "mysql_withheld": row("INSERT", {"a": (3, integer(7)), "b": (1, NONE), "c": (3, NULL)}),
        "mysql_values_without_form": row(
            "INSERT",
            {
                "id": (8, integer(2**64 - 1, 8)),
                "zero": (12, local(0, 0, 0, 0, 0, 0)),
                "swe": (253, character(b"}", "swe7")),
            },
        ),
        "mysql_varbinary": row("INSERT", {"id": (254, binary(bytes(16), "BINARY")), "v": (253, character("text"))}),
        "escaped_dots": row("INSERT", {"a": (3, integer(7))}, objectName="shop\\u002Ede.dbo.orders\\u002E2023"),
        "begin": compose("BEGIN", objectName=None),
        "heartbeat": compose("HEARTBEAT", objectName=None),
        "noop": compose("NOOP", objectName=None),
        "postgresql_insert": compose(
            "INSERT",
            source=("PostgreSQL", "14.8"),
            objectName="shop.public.orders",
            tags={"pk_uk_info": '{"PRIMARY":["id"]}'},
            fields=_POSTGRESQL,
            afterImages=[
                integer(1),
                text("t", "BOOL"),
                binary('{"é": 1}'.encode(), "JSON"),
                zoned("+08:00", year=2023, month=10, day=17, hour=7, minute=2, second=0, millis=123_000),
                decimal("1.10"),
                text("0e2b1c42-5b0c-11ee-8c99-0242ac120002", "UUID"),
                text("happy", "XTYPE"),
                binary(b"\0\1", "BYTEA"),
            ],
        ),
        "oracle_update": compose(
            "UPDATE",
            source=("Oracle", "19.0.0"),
            objectName="SHOP.ORDERS",
            tags={"pk_uk_info": '{"PRIMARY":["ID"]}'},
            fields=_ORACLE,
            beforeImages=[decimal("1", 1, 0), *[NONE] * 6],
            afterImages=[
                decimal("1", 1, 0),
                character("Grün", "AL32UTF8"),
                local(2023, 10, 17, 15, 2, 0),
                local(2023, 10, 17, 15, 2, 0, 123_456_789),
                zoned("Europe/Berlin", year=2023, month=10, day=17, hour=17, minute=2, second=0),
                date_time(day=-1, hour=-2, minute=0, second=0),
                float_(1.100000023841858),
            ],
        ),
        "json_for_another_dialect": b'{"data":[{"id":"1"}],"type":"INSERT"}',
        "damaged": compose("INSERT", afterImages=_ORDER, **rows)[:-40],
    }


if __name__ == "__main__":
    for name, message in cases().items():
        folder = CASES / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "message.bin").write_bytes(message)
