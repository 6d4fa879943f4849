"""Define the type of converters, and the error for values that have no faithful canonical form. Every conversion uses
both.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from translator.message import Scalar

Converter: TypeAlias = Callable[[object], Scalar]
"""Converts a source scalar (text, int, bool, Decimal, float, bytes; never None) to the canonical scalar.

Raises:
    Unrepresentable: the value has no canonical form.
    Assumed: the value has a canonical form only under an assumption.
"""


class Unrepresentable(Exception):
    """A value without a faithful canonical form. `code` is the reason. `raw` is the value's text, which may have any
    length.
    """

    def __init__(self, code: str, raw: object) -> None:
        super().__init__(code)
        self.code = code
        self.raw = raw_text(raw)


class Assumed(Exception):
    """A value was read under an assumption that the event must note. This is not an error. Assumptions are raised
    rather than returned because they are rare.

    `value` is the canonical scalar, and `note` identifies the assumption.
    """

    def __init__(self, value: Scalar, note: str) -> None:
        super().__init__(note)
        self.value = value
        self.note = note


def raw_text(value: object) -> str:
    """Return an issue's raw text: bytes as base64, anything else as text. Characters that UTF-8 cannot encode are
    escaped.

    Booleans and Avro records are written as in JSON.
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
