"""Convert Avro rows for the native path: each record becomes equivalent JSON, cell by cell.

Avro's counts of days and unscaled digits are converted to canonical text. Other types are left to the plain path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from translator._native.layout import LayoutColumn, NativeStep
from translator.dialects._avro_schema import AvroType
from translator.dialects.qlik.avro_values import avro_column
from translator.dialects.qlik.sections import HEADERS
from translator.message import Scalar
from translator.values import Converter, converter
from translator.values.native_kinds import PYTHON, NativeKind, integers_within, native_kind

_REFUSED: NativeStep = ("refused", 0, ())

_PRIMITIVES: Mapping[str, NativeStep] = {
    "null": ("null", 0, ()),
    "boolean": ("boolean", 0, ()),
    "int": ("int", 0, ()),
    "long": ("long", 0, ()),
    "double": ("double", 0, ()),
    "string": ("text", 0, ()),
}
_LOGICAL: Mapping[str, NativeStep] = {
    "uuid": ("text", 0, ()),
    "date": ("date", 0, ()),
    "time-millis": ("time", 3, ()),
    "time-micros": ("time", 6, ()),
    "timestamp-millis": ("timestamp", 3, ()),
    "timestamp-micros": ("timestamp", 6, ()),
    "timestamp-nanos": ("timestamp", 9, ()),
    "local-timestamp-millis": ("timestamp", 3, ()),
    "local-timestamp-micros": ("timestamp", 6, ()),
    "local-timestamp-nanos": ("timestamp", 9, ()),
}
_AS_SENT: Mapping[str, NativeKind] = {
    "boolean": native_kind("boolean", converter("boolean")),
    "int": integers_within(-(2**31), 2**31 - 1),
    "long": integers_within(-(2**63), 2**63 - 1),
    "string": native_kind("string", None),
    "enum": native_kind("string", None),
}
"""Types whose cells are canonical as sent."""


def record_step(schema: AvroType, *, reversed_masks: bool) -> NativeStep:
    """Return the step that reads a data record whose sections are written in the default way."""

    def header(type_: AvroType) -> NativeStep:
        if type_.kind == "bytes":
            return ("hex", int(reversed_masks), ())
        is_time = (type_.logical or "").startswith("timestamp")
        return _cell(type_) if is_time else _primitive(type_)

    members = [(name, _section(type_, header if name == HEADERS else _cell)) for name, type_ in schema.fields]
    return ("record", 0, tuple((_quoted(name), step) for name, step in members))


def layout_column(name: str, canonical: str, convert: Converter | None, declared: AvroType | None) -> LayoutColumn:
    """Return a column with a known type, as declared by the row's field. Without such a field, messages with the column
    are left to the plain path.
    """
    only = None if declared is None else _only(declared)
    if declared is None or only is None or _cell(only) == _REFUSED:
        return LayoutColumn(name, PYTHON, _left)
    sent = avro_column(name, declared)
    if sent.convert is None:
        kind = _AS_SENT[only.kind] if canonical == sent.type else native_kind(canonical, convert)
        return LayoutColumn(name, kind, convert)
    # Only the type's own converter knows the bounds of a number, or reads the float that was sent.
    if canonical != sent.type and only.kind in ("double", "bytes"):
        return LayoutColumn(name, PYTHON, _left)
    return LayoutColumn(name, native_kind(canonical, converter(canonical)), _left)


def _left(value: object) -> Scalar:
    """Leave the message of this cell to the plain path, because the text differs from the value that was sent."""
    raise ValueError("not a common cell")


def _section(type_: AvroType, leaf: Callable[[AvroType], NativeStep]) -> NativeStep:
    """Return the step that reads a section: a record, or a union of null and a record."""
    if type_.kind == "union":
        return ("union", 0, tuple((b"", _section(branch, leaf)) for branch in type_.branches))
    if type_.kind != "record":
        return _PRIMITIVES["null"] if type_.kind == "null" else _REFUSED
    return ("record", 0, tuple((_quoted(name), _nullable(field, leaf)) for name, field in type_.fields))


def _nullable(type_: AvroType, leaf: Callable[[AvroType], NativeStep]) -> NativeStep:
    if type_.kind != "union":
        return leaf(type_)
    only = _only(type_)
    branches = [_REFUSED if only is None and b.kind != "null" else leaf(b) for b in type_.branches]
    return ("union", 0, tuple((b"", step) for step in branches))


def _only(type_: AvroType) -> AvroType | None:
    """Return a column's only non-null type, or None if it has none or several."""
    types = [branch for branch in type_.branches or (type_,) if branch.kind != "null"]
    return types[0] if len(types) == 1 else None


def _cell(type_: AvroType) -> NativeStep:
    if type_.logical == "decimal":
        return ("decimal", type_.scale, ()) if type_.kind == "bytes" and type_.scale >= 0 else _REFUSED
    return _LOGICAL[type_.logical] if type_.logical else _primitive(type_)


def _primitive(type_: AvroType) -> NativeStep:
    if type_.kind == "enum":
        return ("enum", 0, tuple((_quoted(symbol), _REFUSED) for symbol in type_.symbols))
    return _PRIMITIVES.get(type_.kind, _REFUSED)


def _quoted(name: str) -> bytes:
    return msgspec.json.encode(name)
