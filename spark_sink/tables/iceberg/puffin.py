"""Puffin files with deletion vectors. Iceberg refers to each vector by its place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa

from spark_sink.tables.deletion_vectors import encoded_vector

_MAGIC = b"PFA1"

# The footer is not compressed.
_NO_FLAGS = bytes(4)

# The field id of a row's position, to which a deletion vector refers.
_POSITION = 2147483645

# A vector gets its snapshot and sequence number with the commit.
_INHERITED = -1


class VectorPlace(NamedTuple):
    """The place of a deletion vector in its file, and the number of rows that it contains."""

    offset: int
    size: int
    rows: int


def puffin(vectors: Mapping[str, pa.Int64Array]) -> tuple[bytes, dict[str, VectorPlace]]:
    """Return the content of a Puffin file with deletion vectors, and each vector's place. Both mappings have the path
    of the data file as the key.
    """
    content, places = bytearray(_MAGIC), {}
    for path, rows in vectors.items():
        vector = encoded_vector(rows)
        places[path] = VectorPlace(len(content), len(vector), len(rows))
        content += vector
    blobs = [
        {
            "type": "deletion-vector-v1",
            "fields": [_POSITION],
            "snapshot-id": _INHERITED,
            "sequence-number": _INHERITED,
            "offset": place.offset,
            "length": place.size,
            "properties": {"referenced-data-file": path, "cardinality": str(place.rows)},
        }
        for path, place in places.items()
    ]
    footer = msgspec.json.encode({"blobs": blobs, "properties": {"created-by": "spark_sink"}})
    content += _MAGIC + footer + len(footer).to_bytes(4, "little") + _NO_FLAGS + _MAGIC
    return bytes(content), places
