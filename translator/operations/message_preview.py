"""Show the structure and the lengths of a message, but no values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from translator.errors import quote

FRAME_BYTES = 5
"""The size of a registry header plus the first bytes of an envelope. Row data never begins earlier."""

_MEMBERS = 200
_DEPTH = 12
_ITEMS = 2
"""Maximum number of array items to show. A message may have thousands of rows with the same structure."""


def preview(value: bytes | None) -> list[str]:
    """Return lines that describe a value. For JSON, they show field names, types and lengths. Otherwise, they show the
    first bytes in hex.
    """
    if value is None:
        return ["null"]
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return [f"{len(value)} bytes, not JSON, beginning with {value[:FRAME_BYTES].hex(' ') or 'nothing'}"]
    if not isinstance(document, (dict, list)):
        return [f"{len(value)} bytes, JSON: {_kind(document)}"]
    lines = list(_lines(document, 1))
    more = [f"  … and {len(lines) - _MEMBERS} more members"] if len(lines) > _MEMBERS else []
    return [f"{len(value)} bytes, JSON: {_kind(document)}", *lines[:_MEMBERS], *more]


def size_alone(value: bytes | None) -> str:
    """Return the line for a value from a source with masks. Even the name of a field could be part of a masked
    value.
    """
    return "null" if value is None else f"{len(value)} bytes, not shown because columns of the source are masked"


def _lines(node: Any, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    for name, member in _members(node):
        yield f"{'  ' * depth}{name}: {_kind(member)}"
        yield from _lines(member, depth + 1)


def _members(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        yield from ((quote(name, 80)[1:-1], member) for name, member in node.items())
    elif isinstance(node, list):
        yield from ((f"[{number}]", member) for number, member in enumerate(node[:_ITEMS]))


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return f"string of {len(value)}"
        case list():
            return f"array of {len(value)}"
        case _:
            return f"object of {len(value)}"
