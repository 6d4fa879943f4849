"""Map each source type and dataTypeNumber to the native name and the canonical type of a column (§5).

The numbers depend on the source type. If the number of a column is not listed, its type is `unknown`, and its values
are read according to their branch.

MySQL integers. The record does not say whether they are signed, so each maps to the smallest signed type that holds
both ranges. BIGINT stays int64, because a decimal would change every BIGINT key. A greater unsigned value is an
`OUT_OF_RANGE` issue until `tables:` declares the column as uint64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from translator.dialects.dts_avro.record import Fields


class NativeType(NamedTuple):
    """The source's name for a type, and the canonical type for its values."""

    name: str
    canonical: str


def _table(types: Mapping[int, tuple[str, str]]) -> Mapping[int, NativeType]:
    return {number: NativeType(*pair) for number, pair in types.items()}


_MYSQL = _table(
    {
        0: ("DECIMAL", "decimal"),
        1: ("INT8", "int16"),
        2: ("INT16", "int32"),
        3: ("INT32", "int64"),
        4: ("FLOAT", "float32"),
        5: ("DOUBLE", "float64"),
        7: ("TIMESTAMP", "timestamptz"),
        8: ("INT64", "int64"),
        9: ("INT24", "int32"),
        10: ("DATE", "date"),
        11: ("TIME", "time"),
        12: ("DATETIME", "timestamp"),
        13: ("YEAR", "int16"),
        14: ("DATE_NEW", "date"),
        15: ("VARCHAR", "string"),
        16: ("BIT", "uint64"),
        17: ("TIMESTAMP_NEW", "timestamptz"),
        18: ("DATETIME_NEW", "timestamp"),
        19: ("TIME_NEW", "time"),
        245: ("JSON", "json"),
        246: ("DECIMAL_NEW", "decimal"),
        247: ("ENUM", "enum"),
        248: ("SET", "set"),
        249: ("TINY_BLOB", "bytes"),
        250: ("MEDIUM_BLOB", "bytes"),
        251: ("LONG_BLOB", "bytes"),
        252: ("BLOB", "bytes"),
        253: ("VAR_STRING", "string"),
        254: ("STRING", "string"),
        255: ("GEOMETRY", "geometry"),
    }
)

_ORACLE = _table(
    {
        1: ("VARCHAR2", "string"),
        2: ("NUMBER", "decimal"),
        8: ("LONG", "string"),
        12: ("DATE", "timestamp"),
        23: ("RAW", "bytes"),
        24: ("LONG RAW", "bytes"),
        58: ("XMLTYPE", "string"),
        69: ("ROWID", "string"),
        96: ("CHAR", "string"),
        100: ("BINARY_FLOAT", "float32"),
        101: ("BINARY_DOUBLE", "float64"),
        112: ("CLOB", "string"),
        113: ("BLOB", "bytes"),
        114: ("BFILE", "string"),
        180: ("TIMESTAMP", "timestamp"),
        181: ("TIMESTAMP WITH TIME ZONE", "timestamptz"),
        182: ("INTERVAL YEAR TO MONTH", "interval"),
        183: ("INTERVAL DAY TO SECOND", "interval"),
        208: ("UROWID", "string"),
        231: ("TIMESTAMP WITH LOCAL TIME ZONE", "timestamptz"),
    }
)

# The type's OID. No canonical type holds a time of day with a zone, so timetz is text.
_POSTGRESQL = _table(
    {
        16: ("bool", "boolean"),
        17: ("bytea", "bytes"),
        18: ("char", "string"),
        20: ("int8", "int64"),
        21: ("int2", "int16"),
        23: ("int4", "int32"),
        25: ("text", "string"),
        114: ("json", "json"),
        142: ("xml", "string"),
        600: ("point", "string"),
        601: ("lseg", "string"),
        602: ("path", "string"),
        603: ("box", "string"),
        604: ("polygon", "string"),
        628: ("line", "string"),
        650: ("cidr", "string"),
        700: ("float4", "float32"),
        701: ("float8", "float64"),
        718: ("circle", "string"),
        790: ("money", "string"),
        829: ("macaddr", "string"),
        869: ("inet", "string"),
        1042: ("bpchar", "string"),
        1043: ("varchar", "string"),
        1082: ("date", "date"),
        1083: ("time", "time"),
        1114: ("timestamp", "timestamp"),
        1184: ("timestamptz", "timestamptz"),
        1186: ("interval", "interval"),
        1266: ("timetz", "string"),
        1560: ("bit", "string"),
        1561: ("bit[]", "string"),
        1700: ("numeric", "decimal"),
        2950: ("uuid", "uuid"),
        2970: ("txid_snapshot", "string"),
        3220: ("pg_lsn", "string"),
        3614: ("tsvector", "string"),
        3615: ("tsquery", "string"),
        3802: ("jsonb", "json"),
    }
)

# No sample shows how a document and its id are sent.
_MONGODB = _table({0: ("document", "unknown"), 1: ("id", "unknown")})

# For all other source types, no list of the type numbers has ever been published (§5.4).
_TABLES: Mapping[str, Mapping[int, NativeType]] = {
    "MySQL": _MYSQL,
    "DRDS": _MYSQL,
    "Oracle": _ORACLE,
    "PostgreSQL": _POSTGRESQL,
    "MongoDB": _MONGODB,
}

MONGODB = "MongoDB"
MONGODB_ID = "_id"
"""The column that contains a document's id."""
MONGODB_COLUMNS = Fields(b"", (("_value", 0), (MONGODB_ID, 1)))
"""A document has no columns; its images contain these two (§3). This module defines the type numbers, because the
vendor does not.
"""

MYSQL_FAMILY = frozenset({"MySQL", "DRDS"})
MICROSECOND_SOURCES = frozenset({"MySQL", "PostgreSQL"})
"""Sources whose DateTime fractions are micros. In every other source, they are nanos (§4.4)."""

TEXT_OR_BYTES = frozenset({15, 249, 250, 251, 252, 253, 254})
"""MySQL uses the same number for CHAR and BINARY, for VARCHAR and VARBINARY, and for TEXT and BLOB: see `layout`."""


def column_type(source_type: str, number: int) -> NativeType:
    """Return a column's type by its number."""
    found = _TABLES.get(source_type, {}).get(number)
    return found if found is not None else NativeType(f"dataTypeNumber {number}", "unknown")


def text_or_bytes(source_type: str, number: int) -> bool:
    """Return whether the number allows both text and bytes in the column."""
    return source_type in MYSQL_FAMILY and number in TEXT_OR_BYTES
