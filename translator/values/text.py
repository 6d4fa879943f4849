"""Convert text, booleans and bytes from the formats that writers use."""

from __future__ import annotations

import binascii
import math
from decimal import Decimal

from translator.message import Scalar
from translator.values.numbers import SPECIAL_FLOATS, to_decimal
from translator.values.scalar import Unrepresentable, ascii_of, text_of

_BOOLEANS = {"1": True, "0": False, "true": True, "false": False, "t": True, "f": False, "b'1'": True, "b'0'": False}


def to_boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    # Python can also format bytes as text, but b"1" would look like MySQL's b'1'.
    found = None if isinstance(value, bytes) else _BOOLEANS.get(str(value).strip().lower())
    if found is None:
        raise Unrepresentable("NOT_A_BOOLEAN", value)
    return found


def to_string(value: object) -> str:
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return to_decimal(Decimal(repr(value))) if math.isfinite(value) else SPECIAL_FLOATS[str(value)]
    if isinstance(value, (int, Decimal)):
        return to_decimal(value)
    raise Unrepresentable("NOT_TEXT", value)


def to_unknown(value: object) -> Scalar:
    """Convert a value that has no declared type. Text and booleans stay unchanged, and numbers become exact text."""
    if isinstance(value, str):
        return text_of(value)
    return value if isinstance(value, bool) else to_string(value)


def to_bytes(value: object) -> str:
    if not isinstance(value, bytes):
        raise Unrepresentable("NOT_BYTES", value)
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def bytes_from_hex(value: object) -> str:
    """Convert bytes sent as hex digits to base64."""
    try:
        return to_bytes(binascii.unhexlify(ascii_of(value)))
    except ValueError:
        raise Unrepresentable("NOT_HEX", value) from None


def bytes_from_base64(value: object) -> str:
    """Check bytes sent as base64: the standard alphabet with padding, as an encoder writes it."""
    text = ascii_of(value)
    try:
        written = to_bytes(binascii.a2b_base64(text))
    except ValueError:
        written = None
    if written != text:
        raise Unrepresentable("NOT_BASE64", value)
    return text


def bytes_from_latin1(value: object) -> str:
    """Convert bytes sent as one character each, U+0000 to U+00FF (docs/formats/canal.md §7.1), to base64."""
    try:
        return to_bytes(text_of(value).encode("latin-1"))
    except UnicodeEncodeError:
        raise Unrepresentable("NOT_LATIN1", value) from None
