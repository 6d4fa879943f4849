"""changeMask and columnMask: hex text, most significant byte first; bit n-1 is ordinal n (§5)."""

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
    """The mask as a number; None when it is missing, null or empty, which means unknown and not "no column".

    Read from the right, so that neither an odd length nor cut or added leading zeros change it.
    """
    text = field(headers, name, str, path, optional=True)
    if not text:
        return None
    digits = _HEX.match(text)
    if digits is None:
        raise MessageError(ErrorCode.INVALID_FIELD, f"{name} is not hex digits", path=f"{path}.{name}")
    return int(digits[1], 16)


_BYTE = 8


class Masks(Struct, frozen=True):
    """Both masks of a message with the ordinals of its columns, in rising order. Bits above the last one are cut."""

    column: int | None
    change: int | None
    ordinals: Ordinals
    highest: int
    """The highest ordinal; 0 where there are none."""
    column_exceeds: bool = False
    """The columnMask had bits above the highest ordinal."""
    change_exceeds: bool = False
    """The changeMask had such bits."""

    @classmethod
    def over(cls, column: int | None, change: int | None, ordinals: Ordinals) -> Masks:
        """Return the masks of columns. A bit of no column says nothing: some writers fill whole bytes."""
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
        """True where the columnMask has all bits, or there is no such mask: then no column is uncaptured."""
        return self.column is None or self.column + 1 == 1 << self.highest

    def uncaptured(self, row: Mapping[str, object]) -> list[str]:
        """Columns of a row without a bit in the columnMask."""
        mask, ordinals = self.column, self.ordinals
        if mask is None:
            return []
        return [name for name in row if not mask >> ordinals[name] - 1 & 1]

    def changed(self) -> list[str]:
        """Columns with a bit in the changeMask."""
        mask, bits = self.change or 0, set()
        while mask:
            rest = mask & mask - 1
            bits.add((mask ^ rest).bit_length())
            mask = rest
        return [name for name, ordinal in self.ordinals.items() if ordinal in bits]


def check_byte_order(column: int | None, change: int | None, highest: int, path: str) -> None:
    """Refuse masks in Avro of several bytes with bits above the highest ordinal.

    Such a bit is the only evidence that their bytes lie the other way round. In a single byte there is no order.

    Raises:
        MessageError: INVALID_FIELD.
    """
    for name, mask in (("columnMask", column), ("changeMask", change)):
        if mask is not None and mask.bit_length() > max(highest, _BYTE):
            raise MessageError(
                ErrorCode.INVALID_FIELD,
                f"{name} marks column {mask.bit_length()}; the highest ordinal is {highest}; the option avro_masks says"
                " which of the bytes comes first",
                path=f"{path}.{name}",
            )


class Gaps(Struct, frozen=True):
    """The nulls of a message that are values, told by a columnMask that leaves columns out.

    A column that was not captured is sent all the same, with value null (§0.3). A value beside a clear bit
    speaks for itself, and disproves the mask: it is not of this row, and then nothing tells which nulls are values.
    """

    masks: Masks
    disproved: bool

    @classmethod
    def of(cls, masks: Masks, *rows: Mapping[str, object] | None, assumed: bool = False) -> Gaps | None:
        """The gaps of a message with these images; None where the mask leaves no column out.

        Where the places in the row were assumed to be the ordinals, a bit above the last place disproves that.
        """
        if masks.leaves_none_out:
            return None
        if assumed and masks.column_exceeds:
            return cls(masks, True)
        return cls(masks, any(row[name] is not None for row in rows if row for name in masks.uncaptured(row)))

    def withheld(self, row: Mapping[str, object]) -> list[str]:
        """Columns whose null says nothing about their value."""
        doubtful = row if self.disproved else self.masks.uncaptured(row)
        return [name for name in doubtful if row[name] is None]
