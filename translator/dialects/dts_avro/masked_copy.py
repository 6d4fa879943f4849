"""Make masked copies of DTS records. A record is decoded, and encoded again with different values."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import fastavro

from translator.dialects._masked_statement import masked_statement
from translator.dialects._masked_values import MaskedValues
from translator.dialects.dts_avro.schema import NAMESPACE, V2, V3
from translator.dialects.dts_avro.types import MYSQL_FAMILY
from translator.errors import Unmaskable

_IMAGES = ("beforeImages", "afterImages")
_DAY = ("year", "month", "day")
_WKB_HEADER_BYTES = 9
"""A geometry's byte order and type, optionally after four bytes of SRID (`wkb`)."""


def masked_copy(value: bytes, masked: MaskedValues) -> bytes:
    """Return the record with different row values and literals.

    Raises:
        Unmaskable: the value is not a version 2 or version 3 record.
    """
    for schema in (V3, V2):
        record = _read(value, schema)
        if record is not None:
            break
    else:
        raise Unmaskable("it is not a DTS record")
    quotes = "'\"" if record["source"]["sourceType"] in MYSQL_FAMILY else "'"
    for name in _IMAGES:
        image = record[name]
        if isinstance(image, str):
            record[name] = masked_statement(image, masked, quotes=quotes)
        elif image is not None:
            record[name] = [_cell(cell, masked) for cell in image]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def _read(value: bytes, schema: Any) -> dict[str, Any] | None:
    data = io.BytesIO(value)
    try:
        record = fastavro.schemaless_reader(data, schema, None, return_named_type=True)
    except Exception:  # fastavro can raise anything; every error means that this is not such a record
        return None
    return cast(dict[str, Any], record) if data.tell() == len(value) else None


def _cell(cell: Any, masked: MaskedValues) -> Any:
    """Mask a cell that fastavro has read. It is null, an enum symbol, or the name of a type with its fields."""
    if not isinstance(cell, tuple):
        return cell
    name, fields = cell
    if isinstance(fields, str):
        return fields
    return name, _MASKS[name.removeprefix(NAMESPACE + ".")](fields, masked)


def _text(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    return {**fields, "value": masked.text(fields["value"])}


def _float(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    return {**fields, "value": float(masked.text(repr(fields["value"])))}


def _bytes(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    """Mask bytes that may or may not be text. ASCII letters are the same in all charsets that sources use."""
    data: bytes = fields["value"]
    try:
        return {**fields, "value": masked.text(data.decode()).encode()}
    except UnicodeDecodeError:
        return {**fields, "value": bytes(ord("a") + byte % 26 for byte in masked.bytes(data))}


def _timestamp(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    return {name: int(masked.number(str(number))) for name, number in fields.items()}


def _date_time(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    """Return another existing day. No part of the time is greater than in the original."""
    smaller = {name: None if part is None else int(masked.number(str(part))) for name, part in fields.items()}
    day = [fields[name] for name in _DAY]
    if None in day or not all(day):
        return smaller
    moved = masked.text("{:04}-{:02}-{:02}".format(*day)).split("-")
    return {**smaller, **dict(zip(_DAY, map(int, moved), strict=True))}


def _zoned(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    return {**fields, "value": _date_time(fields["value"], masked)}


def _geometry_text(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    return {**fields, "value": re.sub(r"\d+(\.\d+)?", lambda found: masked.number(found[0]), fields["value"])}


def _geometry(fields: Mapping[str, Any], masked: MaskedValues) -> dict[str, Any]:
    data: bytes = fields["value"]
    return {**fields, "value": data[:_WKB_HEADER_BYTES] + masked.bytes(data[_WKB_HEADER_BYTES:])}


_MASKS: Mapping[str, Callable[[Mapping[str, Any], MaskedValues], dict[str, Any]]] = {
    "Integer": _text,
    "Character": _bytes,
    "Decimal": _text,
    "Float": _float,
    "Timestamp": _timestamp,
    "DateTime": _date_time,
    "TimestampWithTimeZone": _zoned,
    "BinaryGeometry": _geometry,
    "TextGeometry": _geometry_text,
    "BinaryObject": _bytes,
    "TextObject": _text,
}
