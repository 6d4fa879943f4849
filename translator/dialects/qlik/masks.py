"""Read changeMask and columnMask, which are hex text with the most significant byte first. Bit n-1 is ordinal n
(§5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from translator.dialects._json import field
from translator.errors import ErrorCode, MessageError

Ordinals: TypeAlias = dict[str, int]
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f]+)\Z")


def read_mask(headers: Mapping[str, Any], name: str, path: str) -> int | None:
    """Return the mask as a number. Return None if it is missing, null or empty, which means "unknown" and not "no
    column".

    The text is read from the right, so an odd length, and missing or additional leading zeros, do not matter.
    """
    text = field(headers, name, str, path, optional=True)
    if not text:
        return None
    digits = _HEX.match(text)
    if digits is None:
        raise MessageError(ErrorCode.INVALID_FIELD, f"{name} does not consist of hex digits", path=f"{path}.{name}")
    return int(digits[1], 16)


_BYTE = 8


class Masks(Struct, frozen=True):
    """A message's two masks, with the ordinals of its columns in ascending order. Bits above the last ordinal are
    removed.
    """

    column: int | None
    change: int | None
    ordinals: Ordinals
    highest: int
    """The highest ordinal, or 0 if no column has an ordinal."""
    column_exceeds: bool = False
    """True if the columnMask had bits above the highest ordinal."""
    change_exceeds: bool = False
    """True if the changeMask had bits above the highest ordinal."""

    @classmethod
    def over(cls, column: int | None, change: int | None, ordinals: Ordinals) -> Masks:
        """Return the masks for columns. Bits without a column have no meaning, because some writers fill whole
        bytes.
        """
        highest = next(reversed(ordinals.values()), 0)
        if (column or 0) >> highest == 0 == (change or 0) >> highest:
            return cls(column, change, ordinals, highest)
        return cls(
            None if column is None else column & (1 << highest) - 1,
            None if change is None else change & (1 << highest) - 1,
            ordinals,
            highest,
            (column or 0) >> highest != 0,
            (change or 0) >> highest != 0,
        )

    @property
    def leaves_none_out(self) -> bool:
        """True if the columnMask has all bits set or is missing, so that every column was captured."""
        return self.column is None or self.column + 1 == 1 << self.highest

    def uncaptured(self, row: Mapping[str, object]) -> list[str]:
        """Return the columns in a row whose bit in the columnMask is not set."""
        mask, ordinals = self.column, self.ordinals
        if mask is None:
            return []
        return [name for name in row if not mask >> ordinals[name] - 1 & 1]

    def changed(self) -> list[str]:
        """Return the columns whose bit in the changeMask is set."""
        mask, bits = self.change or 0, set()
        while mask:
            rest = mask & mask - 1
            bits.add((mask ^ rest).bit_length())
            mask = rest
        return [name for name, ordinal in self.ordinals.items() if ordinal in bits]


def check_byte_order(column: int | None, change: int | None, highest: int, path: str) -> None:
    """Reject Avro masks that have several bytes and bits above the highest ordinal.

    Nothing else shows that the bytes are in reverse order. A single byte has no order.

    Raises:
        MessageError: INVALID_FIELD.
    """
    for name, mask in (("columnMask", column), ("changeMask", change)):
        if mask is not None and mask.bit_length() > max(highest, _BYTE):
            raise MessageError(
                ErrorCode.INVALID_FIELD,
                f"{name} marks column {mask.bit_length()}, but the highest ordinal is {highest}; check the byte "
                "order in the option avro_masks",
                path=f"{path}.{name}",
            )


class Gaps(Struct, frozen=True):
    """Determines which nulls in a message are values, if a columnMask excludes columns.

    A column that was not captured is still sent, with value null (§0.3). If a column has a value although its bit is
    clear, the value is used. The mask cannot belong to this row. In that case, it is unknown which nulls are values.
    """

    masks: Masks
    disproved: bool

    @classmethod
    def of(cls, masks: Masks, *rows: Mapping[str, object] | None, assumed: bool = False) -> Gaps | None:
        """Return the gaps in a message with these images, or None if the mask includes all columns.

        If the ordinals are only assumed to be the positions in the row, a bit above the last position disproves this.
        """
        if masks.leaves_none_out:
            return None
        if assumed and masks.column_exceeds:
            return cls(masks, True)
        return cls(masks, any(row[name] is not None for row in rows if row for name in masks.uncaptured(row)))

    def withheld(self, row: Mapping[str, object]) -> list[str]:
        """Return the columns in which a null does not show whether the value is NULL."""
        doubtful = row if self.disproved else self.masks.uncaptured(row)
        return [name for name in doubtful if row[name] is None]
