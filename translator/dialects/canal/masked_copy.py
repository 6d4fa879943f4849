"""Masked copies of Canal messages."""

from __future__ import annotations

from translator.dialects._masked_json import Part, Path, masked_json
from translator.dialects._masked_values import MaskedValues

_KEPT = frozenset({
    *("database", "table", "type", "isDdl", "id", "gtid", "ts", "es"),
    *("mysqlType", "sqlType", "pkNames", "_tidb"),
})  # fmt: skip
"""Members that say nothing of a row; any other may."""


def masked_copy(value: bytes, masked: MaskedValues) -> bytes:
    """Return the message with other values of rows and literals.

    Raises:
        Unmaskable: it is no JSON.
    """
    return masked_json(value, masked, _part)


def _part(path: Path) -> Part:
    # Writers that put several messages into one array are not read, and yet kept apart here.
    names = [name for name in path if name != "[]"]
    if not names:
        return "value"
    if names[0] == "sql":
        return "statement"
    return "keep" if names[0] in _KEPT else "value"
