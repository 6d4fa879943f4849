"""Compute the layout that all rows with the same shape share: columns, key, converters and table schema. Computed once
and cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.envelope import Column, TableSchema
from cdc_core.sized_cache import SizedMap
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._json import check_distinct
from translator.dialects._rows import Converters
from translator.dialects.dts_avro.fast_path import cell_readers
from translator.dialects.dts_avro.kinds import OTHER_KIND, kind_of
from translator.dialects.dts_avro.record import Image
from translator.dialects.dts_avro.types import MONGODB_COLUMNS, MONGODB_ID, column_type, text_or_bytes
from translator.dialects.dts_avro.values import CellReader, Reading
from translator.errors import ErrorCode, MessageError, quote
from translator.message import DeclaredTable, Scalar, TableName
from translator.values import Converter

PRIMARY = "PRIMARY"


class RowShape(Struct, frozen=True):
    """The input from which a layout is computed. Equal shapes have equal layouts."""

    source_type: str
    reading: Reading
    table: TableName
    columns: tuple[tuple[str, int], ...]
    """Each column's name and dataTypeNumber."""
    pk_uk_info: str | None
    notes: tuple[str, ...] = ()
    contrary: frozenset[int] = frozenset()
    """Indexes of columns whose values contradict their number: text instead of bytes, or the reverse."""


class Layout(Struct):
    """The compiled reader for rows with one shape."""

    shape: RowShape
    names: tuple[str, ...]
    readers: tuple[Sequence[CellReader], ...]
    """Each column's readers, by a cell's first byte. The readers raise Contrary for a value that needs another layout.
    """
    converters: Converters
    """The same readers, by column name."""
    text_or_bytes: tuple[tuple[int, str], ...]
    """The index and the current type of each undeclared column whose number does not determine its type."""
    schema: TableSchema
    key_columns: tuple[str, ...]
    notes: tuple[str, ...]
    contradicted: bool = False
    """True if a message had values with the other type. Later messages probably also have such values, so values are
    checked first.
    """


class Layouts:
    """Creates and caches layouts. The cache only affects speed."""

    def __init__(self, source: str, declared: DeclaredTables, *, unique_key_as_key: bool) -> None:
        self._source = source
        self._declared = declared
        self._unique_key_as_key = unique_key_as_key
        self._known: SizedMap[RowShape, Layout] = SizedMap()

    def of(self, shape: RowShape) -> Layout:
        """Return the layout for rows without contradictions."""
        layout = self._known.get(shape)
        if layout is None:
            layout = self._make(shape)
            self._known.keep(shape, layout)
        return layout

    def for_row(self, layout: Layout, images: Sequence[Image]) -> Layout:
        """Return the layout for a message with these images. It is `layout`, unless the message's contradictions
        require another one.
        """
        contrary = _contrary(layout, images)
        return self.of(msgspec.structs.replace(layout.shape, contrary=contrary)) if contrary else layout

    def _make(self, shape: RowShape) -> Layout:
        names = _distinct(shape.columns)
        declared, _ = self._declared.find(shape.table)
        given = (declared.columns if declared else None) or {}
        columns: list[Column] = []
        open_types: list[tuple[int, str]] = []
        readers: list[Sequence[CellReader]] = []
        for index, (name, number) in enumerate(shape.columns):
            native, type_ = column_type(shape.source_type, number)
            is_open = name not in given and text_or_bytes(shape.source_type, number)
            if name in given:
                type_ = given[name]
            elif is_open:
                type_ = OTHER_KIND[type_] if index in shape.contrary else type_
                open_types.append((index, type_))
            columns.append(Column(name, type_, native=native))
            readers.append(cell_readers(type_, shape.reading, open_kind=is_open and index not in shape.contrary))
        key, kind, notes = self._key(shape, declared, names)
        places = {name: place for place, name in enumerate(key, start=1)}
        keyed = [
            msgspec.structs.replace(column, key=places[column.name]) if column.name in places else column
            for column in columns
        ]
        table = shape.table
        return Layout(
            shape,
            names,
            tuple(readers),
            {name: _one(read) for name, read in zip(names, readers, strict=True)},
            tuple(open_types),
            TableSchema.of(self._source, table.db, table.schema, table.table, keyed, kind),
            key,
            (*notes, *shape.notes),
        )

    def _key(
        self, shape: RowShape, declared: DeclaredTable | None, names: Sequence[str]
    ) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        """Return the key columns, the key kind and notes. The key is the source's primary key, or the key that the
        operator allowed or declared.
        """
        indexes = _indexes(shape.pk_uk_info, names)
        notes = ("PK_UK_INFO_INVALID",) if indexes is None else ()
        indexes = indexes or {}
        if PRIMARY in indexes:
            return indexes[PRIMARY], "primary", notes
        if shape.columns is MONGODB_COLUMNS.columns:
            return (MONGODB_ID,), "primary", notes
        if self._unique_key_as_key and indexes:
            return next(iter(indexes.values())), "unique", notes
        if declared is not None and declared.key and set(declared.key) <= set(names):
            return declared.key, "configured", notes
        return (), "none", notes


_INDEXES = msgspec.json.Decoder(dict[str, tuple[str, ...]])


def _indexes(pk_uk_info: str | None, names: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Return the columns of each index, by the name of the index, from the tag `pk_uk_info` (§6). Return None if the
    tag is unusable.
    """
    if not pk_uk_info:
        return {}
    try:
        indexes = _INDEXES.decode(pk_uk_info)
        check_distinct(pk_uk_info.encode(), indexes, members=len(indexes))
    except (msgspec.DecodeError, RecursionError, MessageError):
        return None
    known = set(names)
    sound = all(
        columns and len(set(columns)) == len(columns) and known.issuperset(columns) for columns in indexes.values()
    )
    return indexes if sound else None


def _distinct(columns: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    names = tuple(name for name, _ in columns)
    counts = Counter(names)
    if len(counts) != len(names):
        twice = next(name for name in names if counts[name] > 1)
        raise MessageError(ErrorCode.INVALID_FIELD, f"column {quote(twice)} occurs twice", path="$.fields")
    return names


def _one(readers: Sequence[CellReader]) -> Converter:
    def convert(cell: Any) -> Scalar:
        value: Scalar = readers[cell[0]](cell)
        return value

    return convert


def _contrary(layout: Layout, images: Sequence[Image]) -> frozenset[int]:
    """Return the columns whose number does not determine their type, and whose value does not match the type in the
    layout.
    """
    contrary = []
    for index, type_ in layout.text_or_bytes:
        kinds = {kind for image in images if (kind := kind_of(image[index])) is not None}
        if len(kinds) > 1:
            name = quote(layout.names[index])
            reason = f"column {name} is text in one image and bytes in the other"
            raise MessageError(ErrorCode.INVALID_FIELD, reason, path="$.afterImages")
        if kinds and type_ not in kinds:
            contrary.append(index)
    return frozenset(contrary)
