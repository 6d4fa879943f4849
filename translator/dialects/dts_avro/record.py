"""A parsed record. Its parts are Python types, except that each image value is still bytes.

Most values are used only once, by the converter of their column. Many are not used at all, because an update left them
unchanged. The reader therefore only finds the end of each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from translator.dialects._avro_primitives import read_long, read_text

Cell: TypeAlias = bytes
"""A value in an image: its union branch index in one byte, and the payload in Avro's encoding."""

Image: TypeAlias = list[Cell]

# A cell's first byte. Avro writes an index as a zigzag number, which doubles it (§1.3).
NULL = 0
INTEGER = 2
CHARACTER = 4
DECIMAL = 6
FLOAT = 8
TIMESTAMP = 10
DATE_TIME = 12
TIMESTAMP_WITH_TIME_ZONE = 14
BINARY_GEOMETRY = 16
TEXT_GEOMETRY = 18
BINARY_OBJECT = 20
TEXT_OBJECT = 22
EMPTY_OBJECT = 24

BRANCHES = range(NULL, EMPTY_OBJECT + 2, 2)

NULL_CELL = bytes([NULL])
EMPTY_NULL = bytes([EMPTY_OBJECT, 0])
EMPTY_NONE = bytes([EMPTY_OBJECT, 2])


VERSION_2, VERSION_3 = "v2", "v3"
"""The schema versions. Version 1 cannot be distinguished from 2."""


class Fields(Struct, frozen=True):
    """A row's columns. If consecutive records have equal columns, they share one object."""

    raw: bytes
    columns: tuple[tuple[str, int], ...]
    """Each column's name and dataTypeNumber."""


class DtsRecord(Struct):
    """A record, field by field (§1.1)."""

    schema: str
    """The schema version."""
    raw_version: bytes
    raw_id: bytes
    source_timestamp: int
    source_position: str
    raw_safe_source_position: bytes
    source_txid: str
    source_type: str
    raw_source_version: bytes
    operation: str
    object_name: str | None
    process_timestamps: list[int] | None
    tags: dict[str, str]
    fields: Fields | str | None
    before: Image | str | None
    after: Image | str | None
    others: Sequence[int] | None
    """Indexes of the values that differ between the two images, or None if they were not compared."""
    born_timestamp: int | None
    """None in a version 2 record."""

    # These fields are rarely needed, so they remain bytes until then.

    @property
    def version(self) -> int:
        return read_long(self.raw_version, 0)[0]

    @property
    def id(self) -> int:
        return read_long(self.raw_id, 0)[0]

    @property
    def safe_source_position(self) -> str:
        return read_text(self.raw_safe_source_position, 0)[0]

    @property
    def source_version(self) -> str:
        return read_text(self.raw_source_version, 0)[0]
