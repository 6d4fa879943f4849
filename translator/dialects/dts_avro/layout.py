"""What all rows of one shape share: columns, key, converters, table schema. Made once, then looked up.

Text or bytes: MySQL sends one type number for VARCHAR and VARBINARY, for TEXT and BLOB (`types.TEXT_OR_BYTES`). Such
a column has the type that its number names (253 string, 252 bytes) unless a value of the message contradicts, then
the other. So a column that is never null has one type, always; one that is both nullable and contrary to its number
(a nullable VARBINARY) changes between two schema ids until `tables:` declares it, but no value is ever misread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from translator.dialects._tables import DeclaredTables
from translator.dialects.dts_avro import charsets
from translator.dialects.dts_avro.schema import BINARY_OBJECT, CHARACTER, TEXT_OBJECT
from translator.dialects.dts_avro.types import column_type, text_or_bytes
from translator.dialects.dts_avro.values import Reading, cell_converter
from translator.envelope import Column, TableSchema
from translator.errors import ErrorCode, MessageError, quote
from translator.message import DeclaredTable, TableName
from translator.values import Converter

MAX_LAYOUTS = 4096
_OTHER_TYPE = {"string": "bytes", "bytes": "string"}
PRIMARY = "PRIMARY"


class Shape(Struct, frozen=True):
    """What a layout follows from; equal shapes have equal layouts."""

    source_type: str
    reading: Reading
    table: TableName
    fields: tuple[tuple[str, int], ...]
    """Name and dataTypeNumber of each column."""
    pk_uk_info: str | None
    contrary: frozenset[int] = frozenset()
    """Columns whose values contradict the text or bytes of their number, by index."""


class Layout(Struct, frozen=True):
    """How to read the rows of one shape."""

    names: tuple[str, ...]
    converters: Mapping[str, Converter]
    text_or_bytes: tuple[tuple[int, str], ...]
    """Index and present type of each column whose number leaves that open and whom nobody declared."""
    schema: TableSchema
    key_columns: tuple[str, ...]
    notes: tuple[str, ...]


class Layouts:
    """Makes layouts and keeps them. A pure function with a memory: forgetting changes nothing but the speed."""

    def __init__(self, source: str, declared: DeclaredTables, *, unique_key_as_key: bool) -> None:
        self._source = source
        self._declared = declared
        self._unique_key_as_key = unique_key_as_key
        self._known: dict[Shape, Layout] = {}

    def of(self, shape: Shape, images: Sequence[Sequence[Any]]) -> Layout:
        """The layout for the row of a message with these images."""
        layout = self._get(shape)
        contrary = _contrary(layout, images)
        return self._get(msgspec.structs.replace(shape, contrary=contrary)) if contrary else layout

    def _get(self, shape: Shape) -> Layout:
        layout = self._known.get(shape)
        if layout is None:
            layout = self._make(shape)
            if len(self._known) >= MAX_LAYOUTS:
                self._known.clear()
            self._known[shape] = layout
        return layout

    def _make(self, shape: Shape) -> Layout:
        names = _distinct(shape.fields)
        declared, _ = self._declared.find(shape.table)
        given = (declared.columns if declared else None) or {}
        columns: list[Column] = []
        open_types: list[tuple[int, str]] = []
        for index, (name, number) in enumerate(shape.fields):
            native, type_ = column_type(shape.source_type, number)
            if name in given:
                type_ = given[name]
            elif text_or_bytes(shape.source_type, number):
                type_ = _OTHER_TYPE[type_] if index in shape.contrary else type_
                open_types.append((index, type_))
            columns.append(Column(name, type_, native=native))
        key, kind, notes = self._key(shape.pk_uk_info, declared, names)
        keyed = [
            msgspec.structs.replace(column, key=key.index(column.name) + 1) if column.name in key else column
            for column in columns
        ]
        table = shape.table
        return Layout(
            names=names,
            converters={column.name: cell_converter(column.type, shape.reading) for column in columns},
            text_or_bytes=tuple(open_types),
            schema=TableSchema.of(self._source, table.db, table.schema, table.table, keyed, kind),
            key_columns=key,
            notes=notes,
        )

    def _key(
        self, pk_uk_info: str | None, declared: DeclaredTable | None, names: Sequence[str]
    ) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        """Key columns, kind of key and notes: the source's primary key, else what the operator allowed or declared."""
        indexes = _indexes(pk_uk_info, names)
        notes = ("PK_UK_INFO_INVALID",) if indexes is None else ()
        indexes = indexes or {}
        if PRIMARY in indexes:
            return indexes[PRIMARY], "primary", notes
        if self._unique_key_as_key and indexes:
            return next(iter(indexes.values())), "unique", notes
        if declared is not None and declared.key and set(declared.key) <= set(names):
            return declared.key, "configured", notes
        return (), "none", notes


_INDEXES = msgspec.json.Decoder(dict[str, tuple[str, ...]])


def _indexes(pk_uk_info: str | None, names: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Index name -> its columns, as the tag `pk_uk_info` tells (section 6); None when it is of no use."""
    if not pk_uk_info:
        return {}
    try:
        indexes = _INDEXES.decode(pk_uk_info)
    except (msgspec.DecodeError, RecursionError):
        return None
    known = set(names)
    sound = all(
        columns and len(set(columns)) == len(columns) and known.issuperset(columns) for columns in indexes.values()
    )
    return indexes if sound else None


def _distinct(fields: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    names = tuple(name for name, _ in fields)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MessageError(ErrorCode.INVALID_FIELD, f"column {quote(twice)} is named twice", path="$.fields")
    return names


def _contrary(layout: Layout, images: Sequence[Sequence[Any]]) -> frozenset[int]:
    """The columns, of those whose type is open, where a value is not of the layout's type."""
    contrary = []
    for index, type_ in layout.text_or_bytes:
        kinds = {kind for image in images if (kind := _kind(image[index])) is not None}
        if len(kinds) > 1:
            name = quote(layout.names[index])
            reason = f"column {name} holds text in one image and bytes in the other"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path="$.afterImages")
        if kinds and type_ not in kinds:
            contrary.append(index)
    return frozenset(contrary)


_KINDS = {TEXT_OBJECT: "string", BINARY_OBJECT: "bytes"}


def _kind(cell: Any) -> str | None:
    """`string`, `bytes`, or None for a value that does not tell."""
    if cell is None:
        return None
    branch, payload = cell
    if branch == CHARACTER:
        return "bytes" if payload["charset"].lower() == charsets.BINARY else "string"
    return _KINDS.get(branch)
