"""Which of the layouts a message has (formats/qlik.md section 1), and the parts all of them share."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from translator.dialects._json import JsonObject, check_distinct, field, one_of, parse_object
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits

MAGIC = "atMSG"
DATA, METADATA = "DT", "MD"
_TYPES = {DATA: DATA, METADATA: METADATA}

MAX_SCHEMA_ID_CHARS = 128
"""A messageSchemaId has 32 hex digits; it becomes a Kafka key, so that no more than this is taken."""


_ROWS = frozenset({"$.data", "$.beforeData", "$.message.data", "$.message.beforeData"})


class Frame(Struct, frozen=True):
    """A message out of its layout. `body` holds data, beforeData and headers; `path` is where it stands."""

    variant: str
    type: str
    schema_id: str | None
    body: JsonObject
    path: str


def open_frame(value: bytes, limits: Limits) -> Frame:
    """The frame of a value that is not empty.

    Raises:
        MessageError: FRAMING for no known layout, UNSUPPORTED_SHAPE for one that this release does not read.
    """
    _refuse_binary(value)
    root = parse_object(value, limits, _ROWS)
    check_distinct(value, root)
    if "magic" in root:
        return _enveloped(root)
    if "headers" in root and ("data" in root or "beforeData" in root):
        return Frame("bare_json", DATA, None, root, "$")
    raise _refused(root)


# -- by first bytes (formats/qlik.md section 3a, detection)

_BINARY_LAYOUTS: Mapping[bytes, str] = {
    MAGIC.encode("ascii"): "Avro in the Replicate envelope",
    b"\x00": "Avro in the Confluent frame",
}
_JSON_BLANKS = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


def _refuse_binary(value: bytes) -> None:
    if value.startswith(b"{") or value.removeprefix(_BOM).lstrip(_JSON_BLANKS).startswith(b"{"):
        return
    for first_bytes, layout in _BINARY_LAYOUTS.items():
        if value.startswith(first_bytes):
            raise _not_in_this_release(layout)
    raise MessageError(
        ErrorCode.FRAMING,
        f"unknown framing: the first byte is {value[0]:02x}; allowed: 7b (JSON object), 61 of atMSG, 00 (Avro)",
    )


# -- by members


def _enveloped(root: JsonObject) -> Frame:
    magic = field(root, "magic", str, "$")
    if magic != MAGIC:
        raise MessageError(ErrorCode.INVALID_FIELD, f"unknown magic {quote(magic)}; allowed: {MAGIC}", path="$.magic")
    kind = one_of(field(root, "type", str, "$"), _TYPES, "message type", "$.type", ErrorCode.UNKNOWN_TYPE)
    body: JsonObject = field(root, "message", dict, "$")
    if kind == DATA and "headers" not in body and not _FLATTENED_MARKS.isdisjoint(body):
        raise _not_in_this_release(_RENAMED)
    return Frame("enveloped_json", kind, read_schema_id(root, "messageSchemaId", "$"), body, "$.message")


def read_schema_id(parent: JsonObject, name: str, path: str) -> str | None:
    """A schema id; None when it is missing, null or empty: the task publishes no metadata."""
    schema_id: str | None = field(parent, name, str, path, optional=True)
    if schema_id and len(schema_id) > MAX_SCHEMA_ID_CHARS:
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            f"{name} has {len(schema_id)} characters; allowed: {MAX_SCHEMA_ID_CHARS}",
            path=f"{path}.{name}",
        )
    return schema_id or None


_RENAMED = "JSON with renamed or flattened sections (Message Format)"
_FLATTENED_MARKS = frozenset({"operation", "headers_operation"})
_RECORD_MARKS = _FLATTENED_MARKS | {"headers"}


def _refused(root: JsonObject) -> MessageError:
    """Why an object without magic that is not the bare form is not read."""
    if "op" in root and isinstance(root.get("data"), list):
        return _not_in_this_release("legacy flat JSON of 2016")
    record = root.get("message")
    if not _FLATTENED_MARKS.isdisjoint(root) or (isinstance(record, dict) and not _RECORD_MARKS.isdisjoint(record)):
        return _not_in_this_release(_RENAMED)
    return MessageError(
        ErrorCode.FRAMING, "a JSON object of no known layout; allowed: magic, or headers with data or beforeData"
    )


def _not_in_this_release(layout: str) -> MessageError:
    return MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"{layout} is not in this release")
