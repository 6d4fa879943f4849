"""The parts of SharePlex messages that a masked copy keeps."""

from __future__ import annotations

from translator.dialects._masked_json import Part, Path


def part_of(path: Path) -> Part:
    """Say what a scalar of a message is: of `meta` all but the user of the database says nothing of a row."""
    return "keep" if path[:1] == ("meta",) and path[1:2] != ("userid",) else "value"
