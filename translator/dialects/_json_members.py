"""Reading JSON a second time, with the parser of the standard library: slower, and with more to say.

It keeps lone surrogates, which msgspec refuses with the whole text, and it sees the members that an object names twice,
of which msgspec keeps the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from translator.errors import ErrorCode, MessageError, quote

# -- lone surrogates: halves of a character, which JSON can escape (`\ud800`) and UTF-8 cannot carry

Rows: TypeAlias = frozenset[str]
"""Places of the objects that hold cells, as JSON paths with `[*]` for any element: `$.data[*]`."""

has_surrogate_escape = re.compile(rb"\\u[dD][89a-fA-F]").search


def decode_one(value: bytes) -> list[Any]:
    """Decode the one value of a text, with numbers as exact as msgspec reads them.

    Raises:
        UnicodeDecodeError, json.JSONDecodeError: not JSON.
        InvalidOperation, ValueError: a number with too many digits.
    """
    return [_exact.decode(value.decode())]


def decode_all(value: bytes) -> list[Any]:
    """`decode_one` for a text that may hold several values, or none."""
    return list(_values(_exact, value.decode()))


def check_surrogates(parsed: list[Any], rows: Rows) -> None:
    """Refuse lone surrogates outside of the cells of `rows`: there they become an issue of their column, but names,
    SQL text and all else that an event is made of cannot be told without them.

    Raises:
        MessageError: INVALID_FIELD with the place.
    """
    for n, value in enumerate(parsed):
        path = "$" if len(parsed) == 1 else f"$[{n}]"
        if isinstance(value, str) and not _is_whole(value):
            raise _not_whole("the text", path)
        _check_children(value, path, rows)


def _check_children(root: object, path: str, rows: Rows) -> None:
    # Depth first, with the places of the open objects and arrays alone: the values of a message are many more, and
    # each place may hold the long names of those around it.
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
    """Members by name, elements by place."""
    if isinstance(node, dict):
        return iter(node.items())
    return iter(enumerate(node if isinstance(node, list) else ()))


_MAX_NAME = 40
"""Characters of a name that a path spells out."""


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
    reason = f"{what} has a lone surrogate, half of a character; only the value of a column may"
    return MessageError(ErrorCode.INVALID_FIELD, reason, path=path)


def _no_json(name: str) -> NoReturn:
    raise MessageError(ErrorCode.MALFORMED_JSON, f"not JSON: {name}")


_exact = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_json)


# -- members named twice


def check_names(text: str) -> None:
    """Refuse a text of JSON values in which an object names a member twice.

    Raises:
        MessageError: INVALID_FIELD.
        RecursionError: the nesting is too deep to follow.
    """
    for _ in _values(_names_only, text):
        pass


def _distinct(members: list[tuple[str, Any]]) -> None:
    if len(dict(members)) == len(members):
        return
    seen = set()
    for name, _ in members:
        if name in seen:
            raise MessageError(ErrorCode.INVALID_FIELD, f"member {quote(name)} is named twice in one object")
        seen.add(name)


# Numbers stay text: their values do not matter here, and int() refuses very long ones.
_names_only = json.JSONDecoder(object_pairs_hook=_distinct, parse_int=str, parse_float=str)

# -- several values, one a line or end to end

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
