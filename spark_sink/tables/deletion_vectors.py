"""Deletion vectors as Delta Lake and Iceberg store them in a file. A deletion vector has the numbers of the rows that
are no longer in a data file.
"""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

# Each deletion vector begins with its length and the number for the portable format, and ends with a checksum.
_PORTABLE = (1681511377).to_bytes(4, "little")
_LENGTH = _CHECKSUM = 4


def encoded_vector(rows: pa.Int64Array) -> bytes:
    numbers = BitMap64(rows.to_numpy().astype("uint64"))
    numbers.run_optimize()
    return _framed(_PORTABLE + numbers.serialize())


def decoded_vector(content: bytes) -> pa.Int64Array:
    """Return the numbers of the rows in a deletion vector, in ascending order.

    Raises:
        ValueError: the content is not a deletion vector.
    """
    data = content[_LENGTH:-_CHECKSUM]
    if content != _framed(data) or not data.startswith(_PORTABLE):
        raise ValueError("the content is not a deletion vector")
    rows = BitMap64.deserialize(data.removeprefix(_PORTABLE))
    return pa.array(np.asarray(rows.to_array()), pa.uint64()).cast(pa.int64())


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH, "big") + data + zlib.crc32(data).to_bytes(_CHECKSUM, "big")
