"""List the parts of SharePlex messages that a masked copy keeps."""

from __future__ import annotations

from translator.dialects._masked_json import Part, Path


def part_of(path: Path) -> Part:
    """Return the kind of a scalar in a message. Nothing in `meta` except the database user is related to rows."""
    return "keep" if path[:1] == ("meta",) and path[1:2] != ("userid",) else "value"
