"""Text or bytes: MySQL sends one type number for VARCHAR and VARBINARY, for TEXT and BLOB (`types.TEXT_OR_BYTES`).

Such a column has the type that its number names (253 string, 252 bytes) unless a value of the message contradicts,
then the other. So a column that is never null has one type, always; one that is both nullable and contrary to its
number (a nullable VARBINARY) changes between two schema ids until `tables:` declares it, but no value is ever misread.
"""

from __future__ import annotations

from translator.dialects.dts_avro import charsets
from translator.dialects.dts_avro.cells import payload
from translator.dialects.dts_avro.record import BINARY_OBJECT, CHARACTER, TEXT_OBJECT, Cell
from translator.dialects.dts_avro.values import CellReader
from translator.message import Scalar

OTHER_KIND = {"string": "bytes", "bytes": "string"}
TELLING = (CHARACTER, TEXT_OBJECT, BINARY_OBJECT)
"""Branches that tell of which kind a value is."""

_KINDS = {TEXT_OBJECT: "string", BINARY_OBJECT: "bytes"}
_BINARY_LENGTH = 2 * len(charsets.BINARY)


class Contrary(Exception):
    """A value is text where its column has bytes, or the reverse: the column is of the other type."""


def kind_of(cell: Cell) -> str | None:
    """`string`, `bytes`, or None for a value that does not tell."""
    if cell[0] != CHARACTER:
        return _KINDS.get(cell[0])
    if cell[1] < 0x80 and cell[1] != _BINARY_LENGTH:
        return "string"
    return "bytes" if payload(cell)["charset"].lower() == charsets.BINARY else "string"


def guarded(read: CellReader, kind: str) -> CellReader:
    """The reader, which raises Contrary for a value that is not of this kind."""

    def read_cell(cell: Cell) -> Scalar:
        if kind_of(cell) != kind:
            raise Contrary
        return read(cell)

    return read_cell
