"""Distinguish text from bytes. MySQL sends the same type number for VARCHAR and VARBINARY, and the same for TEXT and
BLOB (`types.TEXT_OR_BYTES`).

Such a column has the type that its number suggests (253 string, 252 bytes), unless a value in the message contradicts
it. In that case, the column has the other type. A column that is never null therefore always has the same type. If a
nullable column contradicts its number, as a nullable VARBINARY does, it alternates between two schema ids until
`tables:` declares it. No value is misread.
"""

from __future__ import annotations

from translator.dialects.dts_avro import charsets
from translator.dialects.dts_avro.cells import payload
from translator.dialects.dts_avro.record import BINARY_OBJECT, CHARACTER, TEXT_OBJECT, Cell
from translator.dialects.dts_avro.values import CellReader
from translator.message import Scalar

OTHER_KIND = {"string": "bytes", "bytes": "string"}
TELLING = (CHARACTER, TEXT_OBJECT, BINARY_OBJECT)
"""Branches that show whether a value is text or bytes."""

_KINDS = {TEXT_OBJECT: "string", BINARY_OBJECT: "bytes"}
_BINARY_LENGTH = 2 * len(charsets.BINARY)


class Contrary(Exception):
    """A value is text although its column contains bytes, or the reverse. The column therefore has the other type."""


def kind_of(cell: Cell) -> str | None:
    """Return `string`, `bytes`, or None for a value that shows neither."""
    if cell[0] != CHARACTER:
        return _KINDS.get(cell[0])
    if cell[1] < 0x80 and cell[1] != _BINARY_LENGTH:
        return "string"
    return "bytes" if payload(cell)["charset"].lower() == charsets.BINARY else "string"


def guarded(read: CellReader, kind: str) -> CellReader:
    """Return a reader like `read` that raises Contrary for a value with the other type."""

    def read_cell(cell: Cell) -> Scalar:
        if kind_of(cell) != kind:
            raise Contrary
        return read(cell)

    return read_cell
