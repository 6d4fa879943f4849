"""Find the original JSON text of parsed values, because a parsed number does not keep its notation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*+:)?|([\[{])|([\]}])|[^\s,:"\[\]{}]++', re.DOTALL)
"""A string (including the colon after a field name), an opening bracket, a closing bracket, or any other value."""

_KEPT = frozenset((Decimal, dict, list))
"""Types whose values are all distinct objects after parsing. Their identity therefore shows their position."""


class SentJson:
    """Parsed JSON text that can look up how a value was written. It does no work until the first look-up."""

    __slots__ = ("_parsed", "_spans", "_value")  # an object is created for every message

    def __init__(self, value: bytes, parsed: Sequence[object]) -> None:
        self._value = value
        self._parsed = parsed
        self._spans: dict[int, tuple[int, int]] | None = None

    def text(self, cell: object) -> str | None:
        """Return the original text of a parsed value. Return None if the value can be written in only one way, or comes
        from another text.
        """
        if type(cell) not in _KEPT:
            return None
        if self._spans is None:
            self._value = self._value.removeprefix(_BOM)
            places = zip(_in_order(self._parsed), _spans(self._value), strict=True)
            self._spans = {id(node): span for node, span in places if type(node) in _KEPT}
        span = self._spans.get(id(cell))
        return None if span is None else self._value[slice(*span)].decode()


def _in_order(values: Sequence[object]) -> Iterator[object]:
    """Yield all values, including nested ones, in the order in which they start."""
    pending = [iter(values)]
    while pending:
        for node in pending[-1]:
            yield node
            if isinstance(node, (dict, list)):
                pending.append(iter(node.values() if isinstance(node, dict) else node))
                break
        else:
            pending.pop()


def _spans(text: bytes) -> list[tuple[int, int]]:
    """Return each value's start and end in JSON text, in the order in which they start."""
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        name, opening, closing = token.groups()
        if closing is not None:
            place = opened.pop()
            spans[place] = spans[place][0], token.end()
        elif name is None:
            if opening is not None:
                opened.append(len(spans))
            spans.append(token.span())
    return spans
