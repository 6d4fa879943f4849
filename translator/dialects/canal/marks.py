"""List the marks in a message that identify or rule out a writer: §6.5 A, as tables.

Marks with strength "inferred" decide nothing and are not included. Examples are a type without its parameters, a DDL
type with `isDdl`, and the date of a DTS message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from translator.dialects._json import JsonObject
from translator.dialects.canal.time_units import MILLISECONDS, SECONDS, unit_of
from translator.errors import ErrorCode, MessageError

WATERMARK = "TIDB_WATERMARK"


class NamedWriter(Struct, frozen=True):
    """A writer that a mark identifies with certainty, and the profiles that read its messages."""

    writer: str
    profiles: tuple[str, ...]


_TICDC = NamedWriter("TiCDC", ("ticdc", "auto"))
_INLONG = NamedWriter("InLong", ())

MEMBERS: Mapping[str, NamedWriter] = {
    "_tidb": _TICDC,
    "pgType": NamedWriter("Volcengine DTS", ("auto",)),
    "opType": _INLONG,
    "updateBefore": _INLONG,
}
"""Fields that only one writer sends. InLong sends the before image in `updateBefore`, which is a separate shape."""

TYPES: Mapping[str, NamedWriter] = {WATERMARK: _TICDC}
"""Types that only one writer sends."""


def check_writer(body: JsonObject, profile: str) -> None:
    """Reject a message whose writer is identified by a mark and differs from the declared one.

    Raises:
        MessageError: UNSUPPORTED_SHAPE.
    """
    met = [(f"member {name}", f"$.{name}", MEMBERS[name]) for name in MEMBERS if name in body]
    type_ = body.get("type")
    if isinstance(type_, str) and type_ in TYPES:
        met.append((f"type {type_}", "$.type", TYPES[type_]))
    for mark, path, named in met:
        if profile not in named.profiles:
            advice = f"declare profile {named.profiles[0]}" if named.profiles else "no profile supports its messages"
            reason = f"it was written by {named.writer} ({mark}), but profile {profile} is declared; {advice}"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=path)
    if body.get("pgType"):
        reason = "Volcengine DTS read it from PostgreSQL (member pgType), but only messages from MySQL are supported"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path="$.pgType")


FOREIGN: Mapping[str, str] = {
    "payload": "Debezium or DataWorks",
    "source": "Debezium",
    "xid": "Maxwell",
    "magic": "Qlik Replicate; its dialect is qlik",
    "meta": "SharePlex; its dialect is shareplex",
}
"""Fields from other formats that Canal JSON does not have. These fields are checked if a message's type is not one of
canal's types.
"""


def check_format(body: JsonObject) -> None:
    """Reject a message in another format, and name that format.

    Raises:
        MessageError: UNSUPPORTED_SHAPE.
    """
    for member, format_ in FOREIGN.items():
        if member in body:
            reason = f"the message is not Canal JSON; its member {member} suggests that it is from {format_}"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason, path=f"$.{member}")


class WriterMark(Struct, frozen=True):
    """A trait of a message that rules out the writers of some profiles with certainty."""

    words: str
    seen: Callable[[str, JsonObject], bool]
    """Takes a message and its type, and returns whether the message has the mark."""

    excludes: tuple[str, ...]
    variant: str
    """The format that `auto` assumes if nothing identifies the writer. What the shape does not show remains unknown.
    """

    basis: str
    legacy: bool
    """True if a legacy DTS instance may have written it. Such an instance swaps the two images of an update.
    """


def _of_cloud(type_: str, body: JsonObject) -> bool:
    return type_ in ("INIT", "DDL", "INIT_DDL")


def _zero_id(type_: str, body: JsonObject) -> bool:
    return body.get("id") == 0 and type(body["id"]) is int


def _of_connector(type_: str, body: JsonObject) -> bool:
    bare = all(body.get(name) is None for name in ("mysqlType", "sqlType", "pkNames"))
    es: Any = body.get("es")
    return bare and _zero_id(type_, body) and type(es) is int and unit_of(es) == SECONDS


def _bare(type_: str, body: JsonObject) -> bool:
    return all(body.get(name) is None for name in ("id", "es", "ts", "sqlType"))


def _native_cells(type_: str, body: JsonObject) -> bool:
    rows = [row for name in ("data", "old") for row in _rows(body.get(name)) if isinstance(row, dict)]
    return any(isinstance(cell, (bool, int, Decimal, dict, list)) for row in rows for cell in row.values())


def _rows(sent: Any) -> list[Any]:
    return sent if isinstance(sent, list) else [sent]


def _milliseconds(type_: str, body: JsonObject) -> bool:
    es: Any = body.get("es")
    return type(es) is int and unit_of(es) == MILLISECONDS and es % 1000 != 0


MARKS: tuple[WriterMark, ...] = (
    WriterMark("a type of cloud services", _of_cloud, ("oss", "ticdc", "flink_cdc"), "dts", "certain", legacy=True),
    WriterMark(
        "id 0, no types and no keys, es in seconds", _of_connector, ("oss",), "ckafka", "inferred", legacy=False
    ),
    WriterMark("id 0", _zero_id, ("oss",), "ticdc", "inferred", legacy=False),
    WriterMark("none of id, es, ts or sqlType", _bare, ("oss", "ckafka"), "flink_cdc", "inferred", legacy=False),
    # Only `auto` checks this mark. Profiles whose writers do not write such cells reject the cells when they read rows.
    WriterMark("cells that are not strings", _native_cells, (), "flink_cdc", "inferred", legacy=False),
    WriterMark("es not in whole seconds", _milliseconds, ("oss",), "dts", "inferred", legacy=True),
)
"""The marks, sorted by how specific they are. The first one found applies."""

MARKED_BY_VALUES = ("oss", "ckafka")
"""Profiles in which the values of a row message may reveal another writer, not just its type."""
