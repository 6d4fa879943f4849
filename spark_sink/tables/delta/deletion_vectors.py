"""Files with deletion vectors in the format of Delta Lake. One file contains the deletion vectors of several data
files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from spark_sink.tables.deletion_vectors import encoded_vector

# A file begins with the version of its format.
_VERSION = b"\1"

# The log counts the bytes of a vector without its length and its checksum.
_FRAME = 8


class Place(NamedTuple):
    """The place of a deletion vector in its file, and the number of rows that it contains."""

    offset: int
    size: int
    rows: int


def encoded(vectors: Sequence[pa.Int64Array]) -> tuple[bytes, list[Place]]:
    """Return the content of a file with deletion vectors, and each vector's place."""
    content, places = bytearray(_VERSION), []
    for rows in vectors:
        vector = encoded_vector(rows)
        places.append(Place(len(content), len(vector) - _FRAME, len(rows)))
        content += vector
    return bytes(content), places
