"""Read the two formats of a BinaryGeometry: WKB, and MySQL's internal format with four bytes of SRID before it.

Nobody has documented which of the two DTS writes (§4.5), so both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from translator.values import Unrepresentable

_SRID_BYTES = 4
_HEADER_BYTES = 5
_ORDERS: Mapping[int, Literal["big", "little"]] = {0: "big", 1: "little"}
# Point to GeometryCollection. The thousands mark the Z, M and ZM forms.
_TYPES = frozenset(kind + dimensions for kind in range(1, 8) for dimensions in (0, 1000, 2000, 3000))

# SRID 0 before a little-endian geometry looks like the header of a big-endian point. Only the length distinguishes
# them.
_BIG_ENDIAN_POINT = b"\0\0\0\0\1"
_POINT_BYTES = 21


def wkb(data: bytes) -> bytes:
    """Return the WKB without the SRID. An SRID other than 0 would be lost, so it is an issue."""
    if _is_wkb(data) and (not data.startswith(_BIG_ENDIAN_POINT) or len(data) == _POINT_BYTES):
        return data
    if not _is_wkb(data[_SRID_BYTES:]):
        raise Unrepresentable("NOT_WKB", data)
    if any(data[:_SRID_BYTES]):
        raise Unrepresentable("SRID_UNSUPPORTED", data)
    return data[_SRID_BYTES:]


def _is_wkb(data: bytes) -> bool:
    if len(data) < _HEADER_BYTES or data[0] not in _ORDERS:
        return False
    return int.from_bytes(data[1:_HEADER_BYTES], _ORDERS[data[0]]) in _TYPES
