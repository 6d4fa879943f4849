"""Parse JSON a second time with the standard library, which is slower but reports more.

The standard library accepts lone surrogates, while msgspec rejects the whole text because of them. It also reports the
field names that an object repeats, while msgspec keeps only the last of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from translator.errors import ErrorCode, MessageError, quote

# -- lone surrogates: half characters, which JSON can escape (`\ud800`) but UTF-8 cannot encode

Rows: TypeAlias = frozenset[str]
"""Paths to the objects with cells, as JSON paths with `[*]` for any element: `$.data[*]`."""

has_surrogate_escape = re.compile(rb"\\u[dD][89a-fA-F]").search


def decode_one(value: bytes) -> list[Any]:
    """Decode the only value in a string, with the same exact numbers as msgspec.

    Raises:
        UnicodeDecodeError, json.JSONDecodeError: not JSON.
        InvalidOperation, ValueError: a number has too many digits.
    """
    return [_exact.decode(value.decode())]


def decode_all(value: bytes) -> list[Any]:
    """Decode all values in a string, which may contain several or none. Otherwise the same as `decode_one`."""
    return list(_values(_exact, value.decode()))


def check_surrogates(parsed: list[Any], rows: Rows) -> None:
    """Reject lone surrogates outside the cells in `rows`. In a cell, a lone surrogate becomes an issue of the column.
    Names, SQL text and all other parts of an event cannot be written if they contain lone surrogates.

    Raises:
        MessageError: INVALID_FIELD with the path.
    """
    for n, value in enumerate(parsed):
        path = "$" if len(parsed) == 1 else f"$[{n}]"
        if isinstance(value, str) and not _is_whole(value):
            raise _not_whole("the text", path)
        _check_children(value, path, rows)


def _check_children(root: object, path: str, rows: Rows) -> None:
    # The walk is depth first and stores only the paths to open objects and arrays, because a message has many more
    # values and each path can contain long names.
    pending = [(path, "$", _children(root))]
    while pending:
        path, place, children = pending[-1]
        for name, child in children:
            if isinstance(name, str) and not _is_whole(name):
                raise _not_whole(f"the member name {quote(name)}", path)
            if isinstance(child, (dict, list)) and child:
                kind = _step(name) if isinstance(name, str) else "[*]"
                pending.append((path + _step(name), place + kind, _children(child)))
                break
            is_cell = isinstance(name, str) and place in rows
            if isinstance(child, str) and not is_cell and not _is_whole(child):
                raise _not_whole("the text", path + _step(name))
        else:
            pending.pop()


def _children(node: object) -> Iterator[tuple[str | int, object]]:
    """Yield fields by name, and elements by index."""
    if isinstance(node, dict):
        return iter(node.items())
    return iter(enumerate(node if isinstance(node, list) else ()))


_MAX_NAME = 40
"""Maximum length of a name in a path."""


def _step(name: str | int) -> str:
    if isinstance(name, int):
        return f"[{name}]"
    return f".{name}" if name.isidentifier() and len(name) <= _MAX_NAME else f".{quote(name, _MAX_NAME)}"


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_whole(what: str, path: str) -> MessageError:
    reason = f"{what} contains a lone surrogate (half of a character), which is allowed only in column values"
    return MessageError(ErrorCode.INVALID_FIELD, reason, path=path)


def _no_json(name: str) -> NoReturn:
    raise MessageError(ErrorCode.MALFORMED_JSON, f"not JSON: {name}")


_exact = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_json)


# -- repeated field names


def check_names(text: str) -> None:
    """Reject JSON text in which an object repeats a field name.

    Raises:
        MessageError: INVALID_FIELD.
        RecursionError: the nesting is too deep.
    """
    for _ in _values(_names_only, text):
        pass


def _distinct(members: list[tuple[str, Any]]) -> None:
    if len(dict(members)) == len(members):
        return
    seen = set()
    for name, _ in members:
        if name in seen:
            raise MessageError(ErrorCode.INVALID_FIELD, f"an object contains the member {quote(name)} twice")
        seen.add(name)


# Numbers are left as text, because their values do not matter here, and int() rejects very long numbers.
_names_only = json.JSONDecoder(object_pairs_hook=_distinct, parse_int=str, parse_float=str)

# -- several values, one per line or without separators

_not_space = re.compile(r"[^ \t\n\r]|\Z")


def _values(decoder: json.JSONDecoder, text: str) -> Iterator[Any]:
    place = _skip_space(text, 0)
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        yield value
        place = _skip_space(text, place)


def _skip_space(text: str, place: int) -> int:
    found = _not_space.search(text, place)
    return found.start() if found else place
