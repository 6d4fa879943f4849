"""Read the cells of Avro records, with the types from the schema and the converters for them (§6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from translator.dialects._avro_schema import AvroType
from translator.message import Scalar
from translator.values import (
    Converter,
    Unrepresentable,
    bytes_from_hex,
    clock_of,
    converter,
    date_of_days,
    local_of,
    unscaled_decimal,
)


class AvroColumn(Struct, frozen=True):
    """A column as declared in a writer schema."""

    name: str
    type: str
    """The canonical type."""
    convert: Converter | None
    """The converter to a canonical scalar, or None if fastavro's values are already canonical."""
    native: str


def avro_column(name: str, declared: AvroType) -> AvroColumn:
    """Return the column for a field: a type, or a union of null and a type. If a union has several types, nothing shows
    which of them the column has at the source. The column then has no type, and its values are reported as issues.
    """
    types = [branch for branch in declared.branches if branch.kind != "null"] if declared.branches else [declared]
    if not types or types[0].kind == "null":
        return AvroColumn(name, "unknown", None, "null")
    if len(types) > 1 or types[0].kind == "record":
        return AvroColumn(name, "unknown", _not_a_scalar, "union" if len(types) > 1 else "record")
    (only,) = types
    logical = _LOGICAL[only.logical](only) if only.logical else _PRIMITIVES[only.kind]
    return AvroColumn(name, *logical, f"{only.kind} {_logical_text(only)}" if only.logical else only.kind)


def _not_a_scalar(value: object) -> Scalar:
    raise Unrepresentable("NOT_A_SCALAR", value)


def _logical_text(type_: AvroType) -> str:
    return f"decimal({type_.precision},{type_.scale})" if type_.logical == "decimal" else str(type_.logical)


_Reading = tuple[str, Converter | None]

_PRIMITIVES: Mapping[str, _Reading] = {
    "boolean": ("boolean", None),
    "int": ("int32", None),
    "long": ("int64", None),
    "float": ("float32", converter("float32")),
    "double": ("float64", converter("float64")),
    "bytes": ("bytes", converter("bytes")),
    "fixed": ("bytes", converter("bytes")),
    "string": ("string", None),
    "enum": ("string", None),
}


def _decimal(type_: AvroType) -> _Reading:
    name = f"decimal({type_.precision},{type_.scale})" if type_.precision else "decimal"
    return name, unscaled_decimal(type_.precision, type_.scale)


# A DATETIME has no zone, although Avro's timestamp is a point in time, because columns are not converted to UTC (§6).
_LOGICAL: Mapping[str, Callable[[AvroType], _Reading]] = {
    "decimal": _decimal,
    "uuid": lambda _: ("uuid", None),
    "date": lambda _: ("date", date_of_days),
    "time-millis": lambda _: ("time", clock_of(3)),
    "time-micros": lambda _: ("time", clock_of(6)),
    "timestamp-millis": lambda _: ("timestamp", local_of(3)),
    "timestamp-micros": lambda _: ("timestamp", local_of(6)),
    "timestamp-nanos": lambda _: ("timestamp", local_of(9)),
    "local-timestamp-millis": lambda _: ("timestamp", local_of(3)),
    "local-timestamp-micros": lambda _: ("timestamp", local_of(6)),
    "local-timestamp-nanos": lambda _: ("timestamp", local_of(9)),
}

_RAW_BYTES = frozenset({"bytes", "fixed"})


def converter_to(canonical: str, column: AvroColumn) -> Converter | None:
    """Return the converter for a column whose type comes from metadata or from the operator instead of only from
    Avro.
    """
    if canonical == column.type:
        return column.convert
    if column.native == "string" and canonical == "bytes":
        return bytes_from_hex
    told = converter(canonical)
    read = column.convert
    if read is None or column.native in _RAW_BYTES:
        return told
    return _then(read, told)


def _then(first: Converter, second: Converter) -> Converter:
    def convert(value: Any) -> Scalar:
        return second(first(value))

    return convert
