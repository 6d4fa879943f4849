"""Provide the base for the JSON dialects: exact parsing within limits, and access to fields with errors that include
the path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec

from translator.dialects import _json_members
from translator.dialects._json_members import Rows, check_names, check_surrogates, has_surrogate_escape
from translator.errors import ErrorCode, MessageError, unknown
from translator.message import Limits

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_BOM = b"\xef\xbb\xbf"
_NO_ROWS: Rows = frozenset()

JsonObject = dict[str, Any]


ONE_A_RECORD = "configure the writer to send each message in a separate record"
"""The advice about records with several messages, for dialects that read only one message per record."""


def parse_object(value: bytes, limits: Limits, rows: Rows = _NO_ROWS) -> JsonObject:
    """Return the JSON object in a value. Numbers are exact: an int, or a Decimal if a point or an exponent was sent.

    All text can be encoded as UTF-8. The cells in `rows` are an exception: the column's converter handles a lone
    surrogate there.

    Raises:
        MessageError: MALFORMED_JSON, LIMIT_EXCEEDED, UNSUPPORTED_SHAPE; INVALID_FIELD for any other lone surrogate.
    """
    parsed = parse(value, limits, rows)
    if not isinstance(parsed, dict):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"the value is a JSON {json_type(parsed)}, not an object")
    return parsed


def parse(value: bytes, limits: Limits, rows: Rows = _NO_ROWS, *, several: str = ONE_A_RECORD) -> Any:
    """Return any JSON value within the depth limit. `several` is the advice to give if the text contains more
    values.
    """
    try:
        return _parse_all(_decode_one, _json_members.decode_one, value, limits, rows)[0]
    except MessageError as error:
        if error.code is not ErrorCode.MALFORMED_JSON or not _is_sequence(value):
            raise
        reason = f"more text follows the first JSON value. Does the record contain several messages? {several}"
        raise MessageError(ErrorCode.MALFORMED_JSON, reason) from None


def _is_sequence(value: bytes) -> bool:
    """Return whether a string that is not a single JSON value contains several of them."""
    try:
        return len(_json_members.decode_all(value.removeprefix(_BOM))) > 1
    except (MessageError, ValueError, ArithmeticError, RecursionError):
        return False


def parse_sequence(value: bytes, limits: Limits, rows: Rows = _NO_ROWS) -> list[Any]:
    """Return all JSON values in a string. It may contain none, one value per line, or several without separators."""
    return _parse_all(_decoder.decode_lines, _json_members.decode_all, value, limits, rows)


def _decode_one(value: bytes) -> list[Any]:
    return [_decoder.decode(value)]


_Decode: TypeAlias = Callable[[bytes], list[Any]]


def _parse_all(decode: _Decode, decode_again: _Decode, value: bytes, limits: Limits, rows: Rows) -> list[Any]:
    text = value.removeprefix(_BOM)
    try:
        parsed = _decoded(decode, text, limits)
    except MessageError:
        # The only cause may be a lone surrogate, which msgspec rejects anywhere.
        if not has_surrogate_escape(text):
            raise
        parsed = _decoded(decode_again, text, limits)
        check_surrogates(parsed, rows)
    # A message cannot be nested deeper than its number of opening brackets. Most have few, so the walk is skipped.
    if text.count(b"{") + text.count(b"[") > limits.json_depth:
        _check_depth(parsed, limits)
    return parsed


def _decoded(decode: _Decode, text: bytes, limits: Limits) -> list[Any]:
    try:
        return decode(text)
    except RecursionError:
        raise _too_deep(limits) from None
    except msgspec.ValidationError:
        # Only one error is still possible here: an integer has more than 4300 digits.
        raise _too_many_digits() from None
    except UnicodeDecodeError:  # the error's own text gives an offset inside a string as the position
        raise MessageError(ErrorCode.MALFORMED_JSON, "not JSON: it contains a string that is not valid UTF-8") from None
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise MessageError(ErrorCode.MALFORMED_JSON, f"not JSON: {error}") from None
    except (InvalidOperation, ValueError):  # an exponent has more than 18 digits; int() rejects what msgspec rejects
        raise _too_many_digits() from None


def _too_many_digits() -> MessageError:
    return MessageError(ErrorCode.LIMIT_EXCEEDED, "the message contains a number with too many digits")


def _check_depth(level: list[Any], limits: Limits) -> None:
    for _ in range(limits.json_depth + 1):
        nodes = [node for node in level if isinstance(node, (dict, list))]
        if not nodes:
            return
        level = [child for node in nodes for child in (node.values() if isinstance(node, dict) else node)]
    raise _too_deep(limits)


def _too_deep(limits: Limits) -> MessageError:
    return MessageError(
        ErrorCode.LIMIT_EXCEEDED, f"the JSON is nested more than {limits.json_depth} levels deep (limits.json_depth)"
    )


_MEMBER_COLONS = (b'":', b" :", b"\t:", b"\n:", b"\r:")


def check_distinct(value: bytes, parsed: Any, *, members: int = -1) -> None:
    """Reject JSON text in which an object repeats the name of a field, because the parser silently keeps only the last
    one.

    A field's colon follows a quote or white space. If strings contain the same bytes, the count of such colons only
    goes up. If it equals the number of parsed fields, no name is repeated. This check takes a tenth of the time of a
    second parse.

    Args:
        value: the text.
        parsed: the parsed value.
        members: a lower bound for the number of parsed fields, if the caller knows one.

    Raises:
        MessageError: INVALID_FIELD, or LIMIT_EXCEEDED if the nesting is too deep to compare names.
    """
    colons = sum(map(value.count, _MEMBER_COLONS))
    if colons == members or colons == _count_members(parsed):
        return
    try:
        check_names(value.decode("utf-8-sig"))
    except RecursionError:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED, "the JSON is nested too deeply to compare the names of its members"
        ) from None


def _count_members(parsed: Any) -> int:
    count = 0
    nodes: list[Any] = [parsed] if isinstance(parsed, (dict, list)) else []
    for node in nodes:
        children: Iterable[Any] = node
        if type(node) is dict:
            count += len(node)
            children = node.values()
        for child in children:
            if type(child) is dict or type(child) is list:
                nodes.append(child)  # noqa: PERF401 - a generator here costs a third more, and this runs per message
    return count


_TYPES = {str: "string", bool: "boolean", int: "number", Decimal: "number", list: "array", dict: "object"}
_TYPES_OF_AVRO = {bytes: "bytes", float: "number"}
"""Additional cell types in messages that come in Avro as well as in JSON."""


def json_type(value: object) -> str:
    """Return JSON's name for the type of a parsed value."""
    return "null" if value is None else (_TYPES | _TYPES_OF_AVRO)[type(value)]


def field(
    parent: Mapping[str, Any], name: str, expected: type | tuple[type, ...], path: str, *, optional: bool = False
) -> Any:
    """Return a field with the expected type. Return None if it is missing or null, and `optional` is set.

    Raises:
        MessageError: MISSING_FIELD or INVALID_FIELD.
    """
    value = parent.get(name)
    if type(value) is expected:  # nearly every field in every message
        return value
    if value is None:
        if optional:
            return None
        raise MessageError(ErrorCode.MISSING_FIELD, f"{name} is missing or null", path=f"{path}.{name}")
    kinds = expected if isinstance(expected, tuple) else (expected,)
    # In Python a bool is an int, but in JSON true is not a number.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join(dict.fromkeys("integer" if kinds == (int,) else _TYPES[kind] for kind in kinds))
        raise MessageError(
            ErrorCode.INVALID_FIELD, f"{name} is a JSON {json_type(value)}, not {names}", path=f"{path}.{name}"
        )
    return value


def one_of(value: str, allowed: Mapping[str, Any], what: str, path: str, code: ErrorCode) -> Any:
    """Return `allowed[value]`. If the value is unknown, the error contains it and lists the allowed ones."""
    if value not in allowed:
        raise MessageError(code, unknown(what, value, allowed), path=path)
    return allowed[value]
