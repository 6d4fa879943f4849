"""Masked copies of SharePlex messages."""

from __future__ import annotations

from translator.dialects._masked_json import Part, Path, masked_json
from translator.dialects._masked_values import MaskedValues


def masked_copy(value: bytes, masked: MaskedValues) -> bytes:
    """Return the message with other values of rows, and another user.

    Raises:
        Unmaskable: it is no JSON.
    """
    return masked_json(value, masked, _part)


def _part(path: Path) -> Part:
    names = [name for name in path if name != "[]"]
    return "keep" if names[:1] == ["meta"] and names[1:2] != ["userid"] else "value"
