"""Check an Avro schema that arrives with the data before anything is read with it.

Such a schema is untrusted input, and a small one can describe a huge structure. Examples are endlessly nested types, a
type that contains itself, and a few names that expand to billions of fields without a byte of data. The schema is
either rejected or converted to a tree of `AvroType` within the limits. Arrays and maps are not allowed. No supported
writer uses them for rows and headers, and a count alone can request any amount of memory.

Names may contain characters that Avro does not allow. A registered namespace may be `com.attunity.queue.msg.chips-qa.X`
(docs/formats/qlik.md §3b). Each schema has its own table of names, and a name may be defined again, for example by a
column called `Lineage` (docs/formats/qlik.md §2). Only a reference to a name with two definitions is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from translator.dialects._json import check_distinct, json_type, parse
from translator.errors import ErrorCode, MessageError, quote, unknown
from translator.message import Limits
from translator.values.numbers import MAX_ZEROS

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_MEMBERS_A_LEVEL = 4
"""The number of JSON levels that one level of types may need: record, fields, field, type."""

_NODES_A_COLUMN = 10
"""A column needs six types in a data record: union, null and type in both images. In a metadata message, it needs
eight.
"""
_OTHER_NODES = 200

MAX_DIGITS = 1000
"""Limit for the precision. No database allows more (PostgreSQL has 1000)."""


class AvroType(Struct, frozen=True):
    """A checked type. `kind` is a primitive, `record`, `enum`, `fixed` or `union`. Each of the other fields applies
    only to the kinds that its name suggests.
    """

    kind: str
    name: str = ""
    """A record's, enum's or fixed's full name."""
    fields: tuple[tuple[str, AvroType], ...] = ()
    branches: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    logical: str | None = None
    precision: int = 0
    """Precision for the logical type decimal; 0 if not declared."""
    scale: int = 0
    nodes: int = 1
    """Number of types in this type after every reference has been expanded."""

    @property
    def namespace(self) -> str:
        """The part of the name before its last dot."""
        return self.name.rpartition(".")[0]


def parse_schema(text: bytes, limits: Limits) -> AvroType:
    """Return the type that a schema text declares.

    Raises:
        MessageError: MALFORMED_AVRO if the text is not an Avro schema, LIMIT_EXCEEDED, or UNSUPPORTED_SHAPE for arrays
            and maps.
    """
    if len(text) > limits.schema_text_bytes:
        reason = (
            f"the schema has {len(text)} bytes, but only {limits.schema_text_bytes} are allowed "
            "(limits.schema_text_bytes)"
        )
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
    try:
        declared = _json_of(text, limits)
        if not isinstance(declared, str):
            check_distinct(text, declared)
        return _Parser(limits).parse(declared, "", 1, "$")
    except MessageError as error:
        code = error.code if error.code in _OWN_CODES else ErrorCode.MALFORMED_AVRO
        raise MessageError(code, f"the schema is invalid: {error.reason}", path=error.path) from None
    except RecursionError:
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, _too_deep(limits)) from None


def _json_of(text: bytes, limits: Limits) -> Any:
    levels = limits.schema_depth * _MEMBERS_A_LEVEL
    try:
        return parse(text, replace(limits, json_depth=levels))
    except MessageError as error:
        if error.code is not ErrorCode.LIMIT_EXCEEDED:
            raise
        # The reason in that error refers to the limit for messages, which is a different limit.
        reason = (
            f"the JSON has more than {levels} levels (limits.schema_depth is {limits.schema_depth}) or a number "
            "that is too long"
        )
        raise MessageError(error.code, reason) from None


_OWN_CODES = (ErrorCode.LIMIT_EXCEEDED, ErrorCode.UNSUPPORTED_SHAPE)


def _too_deep(limits: Limits) -> str:
    return f"types are nested deeper than {limits.schema_depth} (limits.schema_depth)"


_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# Each logical type, and the types that it can annotate. On any other type, it has no meaning (Avro specification,
# Logical Types).
_LOGICAL: Mapping[str, tuple[str, ...]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string",),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
}

LOGICAL_TYPES = frozenset(_LOGICAL)
"""Logical types that are interpreted here. All others are ignored."""


class _Parser:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._max_nodes = limits.columns * _NODES_A_COLUMN + _OTHER_NODES
        self._named: dict[str, AvroType | None] = {}
        """None while the definition is incomplete."""
        self._ambiguous: set[str] = set()
        self._composites: Mapping[str, Callable[[dict[str, Any], str, int, str], AvroType]] = {
            "record": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._collection,
            "map": self._collection,
        }

    def parse(self, declared: Any, namespace: str, depth: int, path: str) -> AvroType:
        if depth > self._limits.schema_depth:
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, _too_deep(self._limits), path=path)
        if isinstance(declared, str):
            return AvroType(declared) if declared in PRIMITIVES else self._reference(declared, namespace, path)
        if isinstance(declared, list):
            return self._union(declared, namespace, depth, path)
        if not isinstance(declared, dict):
            raise _malformed(f"a type is defined by a JSON {json_type(declared)}, which is not allowed", path)
        kind = declared.get("type")
        if isinstance(kind, str) and kind in self._composites:
            return self._composites[kind](declared, namespace, depth, path)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return _with_logical(AvroType(kind), declared, path)
        if kind is None:
            raise _malformed("a type has no member `type`", path)
        # {"type": {"type": "int", ...}}: writers nest types like this to any depth.
        return self.parse(kind, namespace, depth + 1, f"{path}.type")

    def _reference(self, name: str, namespace: str, path: str) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            allowed = [*PRIMITIVES, *self._composites, *self._named]
            raise _malformed(unknown("type", name, allowed[:20]), path)
        found = self._named[full]
        if found is None:
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, f"type {quote(name)} refers to itself", path=path)
        if full in self._ambiguous:
            raise _malformed(f"type {quote(name)} is defined twice", path)
        return found

    def _union(self, declared: list[Any], namespace: str, depth: int, path: str) -> AvroType:
        if not declared:
            raise _malformed("a union has no branches", path)
        if len(declared) > self._limits.columns:
            raise self._too_many(f"a union with {len(declared)} branches", path)
        branches = []
        for number, branch in enumerate(declared):
            if isinstance(branch, list):
                raise _malformed("a union contains another union", path)
            branches.append(self.parse(branch, namespace, depth + 1, f"{path}[{number}]"))
        return AvroType("union", branches=tuple(branches), nodes=self._sum(branches, path))

    def _record(self, declared: dict[str, Any], namespace: str, depth: int, path: str) -> AvroType:
        name = _full_name(declared, namespace, path)
        listed = declared.get("fields")
        if not isinstance(listed, list):
            raise _malformed(f"record {quote(name)} has no field list", path)
        # Names inside belong to the type's own namespace, and an empty namespace ends the inherited one.
        self._open(name)
        fields: dict[str, AvroType] = {}
        for field in listed:
            field_name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(field_name, str) or not field_name or "type" not in field:
                raise _malformed(f"a field of record {quote(name)} has no name or no type", path)
            if field_name in fields:
                raise _malformed(f"record {quote(name)} has two fields named {quote(field_name)}", path)
            at = f"{path}.{quote(field_name)}"
            inner = self.parse(field["type"], name.rpartition(".")[0], depth + 1, at)
            # Some writers put the logical type next to the field's type.
            fields[field_name] = inner if inner.logical else _with_logical(inner, field, at)
        if len(fields) > self._limits.columns:
            raise self._too_many(f"a record with {len(fields)} fields", path)
        made = AvroType("record", name, tuple(fields.items()), nodes=self._sum(list(fields.values()), path))
        return self._close(name, made)

    def _enum(self, declared: dict[str, Any], namespace: str, depth: int, path: str) -> AvroType:
        name = _full_name(declared, namespace, path)
        symbols = declared.get("symbols")
        if not isinstance(symbols, list) or not symbols:
            raise _malformed(f"enum {quote(name)} has no list of symbols", path)
        if len(symbols) > self._limits.columns:
            raise self._too_many(f"an enum with {len(symbols)} symbols", path)
        for symbol in symbols:
            if not isinstance(symbol, str) or not _SYMBOL.match(symbol):
                raise _malformed(f"enum {quote(name)} has a symbol that is not a valid name", path)
        if len(set(symbols)) < len(symbols):
            raise _malformed(f"enum {quote(name)} has a duplicate symbol", path)
        self._open(name)
        return self._close(name, AvroType("enum", name, symbols=tuple(symbols)))

    def _fixed(self, declared: dict[str, Any], namespace: str, depth: int, path: str) -> AvroType:
        name, size = _full_name(declared, namespace, path), declared.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise _malformed(f"the fixed type {quote(name)} has no size", path)
        if size > self._limits.value_bytes:
            raise self._too_many(f"a fixed type has {size} bytes", path)
        self._open(name)
        return self._close(name, _with_logical(AvroType("fixed", name, size=size), declared, path))

    def _collection(self, declared: dict[str, Any], namespace: str, depth: int, path: str) -> AvroType:
        raise MessageError(
            ErrorCode.UNSUPPORTED_SHAPE,
            f"the row or its headers contain the unsupported type {declared['type']}",
            path=path,
        )

    def _open(self, name: str) -> None:
        if name in self._named:
            self._ambiguous.add(name)
        self._named[name] = None

    def _close(self, name: str, made: AvroType) -> AvroType:
        self._named[name] = made
        return made

    def _sum(self, parts: list[AvroType], path: str) -> int:
        nodes = 1 + sum(part.nodes for part in parts)
        if nodes > self._max_nodes:
            raise self._too_many(f"{nodes} types", path)
        return nodes

    def _too_many(self, what: str, path: str) -> MessageError:
        return MessageError(ErrorCode.LIMIT_EXCEEDED, f"{what} (limits.columns is {self._limits.columns})", path=path)


def _malformed(reason: str, path: str) -> MessageError:
    return MessageError(ErrorCode.MALFORMED_AVRO, reason, path=path)


def _full_name(declared: dict[str, Any], namespace: str, path: str) -> str:
    name, own = declared.get("name"), declared.get("namespace", namespace)
    if not isinstance(name, str) or not name:
        raise _malformed("a named type has no name", path)
    if "." in name or not own:
        return name
    if not isinstance(own, str):
        raise _malformed(f"the namespace of {quote(name)} is not text", path)
    return f"{own}.{name}"


def _with_logical(plain: AvroType, declared: dict[str, Any], path: str) -> AvroType:
    """Return the type with its logical type. By Avro's rule, an unknown or misplaced logical type is ignored."""
    logical = declared.get("logicalType")
    if not isinstance(logical, str) or plain.kind not in _LOGICAL.get(logical, ()):
        return plain
    if logical != "decimal":
        return replace(plain, logical=logical)
    # Avro requires 0 <= scale <= precision. Oracle numbers exceed both bounds, but their digits still determine the
    # value.
    precision, scale = declared.get("precision", 0), declared.get("scale", 0)
    for what, number, least, most in (("precision", precision, 0, MAX_DIGITS), ("scale", scale, -MAX_ZEROS, MAX_ZEROS)):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise _malformed(f"a decimal has a {what} that is not a number from {least} to {most}", path)
    return replace(plain, logical=logical, precision=precision, scale=scale)
