"""Helpers for the tests of DTS Avro: a message -> its one change, a cell -> its one value."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from tests.translator.dialects.dts_avro.composer import Cell, row
from tests.translator.dialects.made import made
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.cells import payload
from translator.dialects.dts_avro.record import DtsRecord, Fields, Image
from translator.dialects.dts_avro.schema import V3
from translator.errors import ErrorCode, MessageError
from translator.message import Changes, DeclaredTable, Message, OtherChange, Outcome, RowChange, Setup

MYSQL = ("MySQL", "5.7")
ORACLE = ("Oracle", "19.0")
POSTGRESQL = ("PostgreSQL", "14.8")
_IMAGES = {field["name"]: field["type"] for field in cast(dict[str, Any], V3)["fields"]}["beforeImages"]
BRANCHES: list[Any] = _IMAGES[2]["items"]
"""The schemas of the branches of an image element."""

SQL_SERVER = ("SQLServer", "2019")


def decode(value: bytes | None, *, tables: Sequence[DeclaredTable] = (), **options: Any) -> Outcome:
    """Return the outcome of one message with these options."""
    return made(DtsAvro, Setup("src", tables=tuple(tables)), options).decode(Message("raw", 0, 0, 0, None, value))


def row_of(value: bytes, *, tables: Sequence[DeclaredTable] = (), **options: Any) -> RowChange:
    """Return the only row of a message."""
    outcome = decode(value, tables=tables, **options)
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    return change


def other_of(value: bytes, **options: Any) -> OtherChange:
    """Return the only change of a message that is not a row: a statement or a mark."""
    outcome = decode(value, **options)
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, OtherChange)
    return change


def refused(value: bytes) -> tuple[ErrorCode, str]:
    """Return the code and path of a message's dead letter."""
    with pytest.raises(MessageError) as caught:
        decode(value)
    return caught.value.code, caught.value.path


_NAMES = [None, *(branch["name"] for branch in BRANCHES[1:])]
_SYMBOLS = ("NULL", "NONE")


def as_fastavro(record: DtsRecord) -> dict[str, Any]:
    """Return a record as fastavro returns it with `return_named_type`."""
    found: dict[str, Any] = {
        "version": record.version,
        "id": record.id,
        "sourceTimestamp": record.source_timestamp,
        "sourcePosition": record.source_position,
        "safeSourcePosition": record.safe_source_position,
        "sourceTxid": record.source_txid,
        "source": {"sourceType": record.source_type, "version": record.source_version},
        "operation": record.operation,
        "objectName": record.object_name,
        "processTimestamps": record.process_timestamps,
        "tags": record.tags,
        "fields": record.fields,
        "beforeImages": _image(record.before),
        "afterImages": _image(record.after),
    }
    if isinstance(record.fields, Fields):
        found["fields"] = [{"name": name, "dataTypeNumber": number} for name, number in record.fields.columns]
    return found if record.born_timestamp is None else {**found, "bornTimestamp": record.born_timestamp}


def _image(image: Image | str | None) -> Any:
    return [_cell(cell) for cell in image] if isinstance(image, list) else image


def _cell(cell: bytes) -> Any:
    name, fields = _NAMES[cell[0] // 2], dict(payload(cell))
    return name and (name, _SYMBOLS[fields["symbol"]] if "symbol" in fields else fields)


def value_of(
    source: tuple[str, str],
    number: int,
    cell: Cell,
    *,
    declared: str | None = None,
    options: Mapping[str, str] | None = None,
    **given: str,
) -> tuple[object, object]:
    """Return the type of a column with its value, or with the code and raw text of its issue."""
    tables = [DeclaredTable("*", columns={"c": declared})] if declared else []
    change = row_of(row("INSERT", {"c": (number, cell)}, source=source, **given), tables=tables, **(options or {}))
    assert change.schema is not None
    assert change.after is not None
    (column,) = change.schema.columns
    if not change.issues:
        return column.type, change.after["c"]
    (issue,) = change.issues
    assert {} == change.after
    return column.type, (issue.code, issue.raw)
