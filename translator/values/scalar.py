"""The shape of a converter, and the error for a value that has no faithful form; every conversion uses both."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from translator.message import Scalar

Converter: TypeAlias = Callable[[object], Scalar]
"""Takes a source scalar (text, int, bool, Decimal, float, bytes; never None), returns the canonical one.

Raises:
    Unrepresentable: there is none.
    Assumed: there is one, by an assumption.
"""


class Unrepresentable(Exception):
    """A value without a faithful canonical form. `code` says why; `raw` is its text, unbounded."""

    def __init__(self, code: str, raw: object) -> None:
        super().__init__(code)
        self.code = code
        self.raw = raw_text(raw)


class Assumed(Exception):
    """Not an error: the value was read by an assumption that the event must name. Raised because it is rare.

    `value` is the canonical scalar, `note` the word for the assumption.
    """

    def __init__(self, value: Scalar, note: str) -> None:
        super().__init__(note)
        self.value = value
        self.note = note


def raw_text(value: object) -> str:
    """The raw text of an issue: bytes as base64, everything else as text; what UTF-8 cannot carry is escaped.

    Booleans and records of Avro are spelled as in JSON.
    """
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (bool, dict, list)):
        return msgspec.json.encode(value).decode()
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise Unrepresentable("NOT_TEXT", value)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Unrepresentable("LONE_SURROGATE", value) from None
    return value


def ascii_of(value: object) -> str:
    text = text_of(value)
    if not text.isascii():
        raise Unrepresentable("NOT_ASCII", value)
    return text
