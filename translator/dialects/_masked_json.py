"""Make masked copies of JSON messages. The text stays the same except for the row values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, TypeAlias

from translator.dialects._masked_statement import masked_statement
from translator.dialects._masked_values import MaskedValues
from translator.errors import Unmaskable

Path: TypeAlias = tuple[str, ...]
"""Field names from the root. Arrays are represented by their items."""

Part: TypeAlias = Literal["keep", "value", "statement"]
"""The kind of a scalar: unrelated to rows, a row value, or SQL."""

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}\[\],:]|[ \t\r\n]+|true|false|null', re.DOTALL)
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
_BOM = "\ufeff"


def masked_json(
    value: bytes, masked: MaskedValues, part_of: Callable[[Path], Part], keep: Collection[str] = ()
) -> bytes:
    """Return the text with different row values. Several documents in one string are masked together.

    Args:
        keep: the strings that are never values, such as a placeholder for a value that was not sent.

    Raises:
        Unmaskable: the text is not JSON, so values cannot be distinguished from other text.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise Unmaskable("it is not valid UTF-8") from None
    return "".join(_pieces(text, masked, part_of, keep)).encode("utf-8")


def masked_key(key: bytes | None, masked: MaskedValues) -> bytes | None:
    """Return the key of a record with different values. In JSON, these are the scalars. Otherwise, it is the whole
    text.

    Raises:
        Unmaskable: the key is not text.
    """
    if not key:
        return key
    try:
        text = key.decode()
    except UnicodeDecodeError:
        raise Unmaskable("its key is not valid text") from None
    try:
        json.loads(text)
    except ValueError:
        return masked.text(text).encode()
    return masked_json(key, masked, lambda path: "value")


def _pieces(text: str, masked: MaskedValues, part_of: Callable[[Path], Part], keep: Collection[str]) -> Iterator[str]:
    at = len(_BOM) if text.startswith(_BOM) else 0
    yield text[:at]
    path: list[str | None] = []  # the current field in each open object, None for an array
    objects: list[bool] = []  # for each open object or array, whether it is an object
    name_comes = False
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise Unmaskable(f"it is not valid JSON at character {at}")
        piece, at = found[0], found.end()
        match piece[0]:
            case "{" | "[":
                objects.append(piece == "{")
                path.append(None)
                name_comes = objects[-1]
            case "}" | "]":
                if not objects or objects.pop() != (piece == "}"):
                    raise Unmaskable(f"it is not valid JSON at character {at - 1}")
                path.pop()
                name_comes = False
            case ",":
                name_comes = bool(objects) and objects[-1]
            case '"' if name_comes:
                path[-1], name_comes = _read(piece), False
            case '"':
                piece = _text(piece, masked, part_of(_names(path)), keep)
            case first if first in "-0123456789" and part_of(_names(path)) != "keep":
                piece = masked.number(piece)
        yield piece
    if objects:
        raise Unmaskable("it is not JSON: the text ends inside a value")


def _names(path: Iterable[str | None]) -> Path:
    return tuple(name for name in path if name is not None)


def _read(piece: str) -> str:
    try:
        return str(json.loads(piece, strict=False))
    except ValueError:
        raise Unmaskable("it is not JSON: it contains a string that cannot be read") from None


def _text(piece: str, masked: MaskedValues, part: Part, keep: Collection[str]) -> str:
    """Return a masked string. Characters that the mask does not change keep their escapes."""
    if part == "keep":
        return piece
    text = _read(piece)
    if text in keep:
        return piece
    other = masked.text(text) if part == "value" else masked_statement(text, masked)
    units = _UNIT.findall(piece[1:-1])
    if not len(units) == len(text) == len(other):
        return json.dumps(other)
    return '"' + "".join(map(_unit, units, text, other)) + '"'


def _unit(unit: str, char: str, other: str) -> str:
    if char == other:
        return unit
    return json.dumps(other)[1:-1] if unit.startswith("\\u") else other
