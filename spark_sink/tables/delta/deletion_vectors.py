"""Deletion vectors in the format of Delta Lake. A deletion vector has the numbers of the rows that are no longer in a
data file. One file contains the deletion vectors of several data files.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

# A file begins with the version of its format. Each deletion vector begins with the number for the portable format.
_VERSION = b"\1"
_PORTABLE = (1681511377).to_bytes(4, "little")


class Place(NamedTuple):
    """The place of a deletion vector in its file, and the number of rows that it contains."""

    offset: int
    size: int
    rows: int


def encoded(vectors: Sequence[pa.Int64Array]) -> tuple[bytes, list[Place]]:
    """Return the content of a file with deletion vectors, and each vector's place."""
    content, places = bytearray(_VERSION), []
    for rows in vectors:
        numbers = BitMap64(rows.to_numpy().astype("uint64"))
        numbers.run_optimize()
        data = _PORTABLE + numbers.serialize()
        places.append(Place(len(content), len(data), len(numbers)))
        content += len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    return bytes(content), places
