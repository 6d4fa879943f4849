"""List the parts of Canal messages that a masked copy keeps."""

from __future__ import annotations

from translator.dialects._masked_json import Part, Path

_KEPT = frozenset({
    *("database", "table", "type", "isDdl", "id", "gtid", "ts", "es"),
    *("mysqlType", "sqlType", "pkNames", "_tidb"),
})  # fmt: skip
"""Fields that contain nothing from a row. All other fields may contain row values."""


def part_of(path: Path) -> Part:
    """Return the kind of a scalar in a message."""
    if path[:1] == ("sql",):
        return "statement"
    return "keep" if not _KEPT.isdisjoint(path[:1]) else "value"
