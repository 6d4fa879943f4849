"""The two Avro framings: the Replicate envelope (§3a) and Confluent's frame (§3b)."""

from __future__ import annotations

from msgspec import Struct

from translator.dialects._avro_primitives import TRUNCATED, Damage, TooMany, check_block, read_count, sized_start
from translator.dialects.qlik.frame import MAGIC, MAX_SCHEMA_ID_CHARS, check_schema_id, read_type
from translator.errors import ErrorCode, MessageError
from translator.message import Limits

# -- the Replicate envelope


class Envelope(Struct, frozen=True):
    """A decoded envelope; `message` is still encoded."""

    type: str
    schema_id: str | None
    schema_text: bytes | None
    message: bytes


def open_envelope(value: bytes, limits: Limits) -> Envelope:
    """Read the envelope of a value that begins with the envelope's magic bytes. Its schema is fixed, so no schema has
    to be looked up.

    Raises:
        MessageError: MALFORMED_AVRO, UNKNOWN_TYPE, INVALID_FIELD, LIMIT_EXCEEDED.
    """
    name = "type"
    try:
        kind, at = _sized(value, len(MAGIC))
        name = "headers"
        at = _skip_headers(value, at)
        name = "messageSchemaId"
        schema_id, at = _optional(value, at)
        name = "messageSchema"
        schema_text, at = _optional(value, at)
        name = "message"
        message, at = _sized(value, at)
    except (Damage, IndexError) as error:
        raise MessageError(
            ErrorCode.MALFORMED_AVRO, f"the value is not an envelope: {_reason(error)}", path=f"$.{name}"
        ) from None
    if at < len(value):
        raise MessageError(ErrorCode.MALFORMED_AVRO, f"the envelope is followed by {len(value) - at} unexpected bytes")
    if schema_text is not None and len(schema_text) > limits.schema_text_bytes:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED,
            (
                f"it has {len(schema_text)} bytes, but only {limits.schema_text_bytes} are allowed "
                "(limits.schema_text_bytes)"
            ),
            path="$.messageSchema",
        )
    return Envelope(read_type(_decoded(kind, "type")), _schema_id(schema_id), schema_text or None, message)


def _reason(error: Damage | IndexError) -> str:
    if isinstance(error, TooMany):
        return "it declares more entries than it has bytes"
    return error.reason if isinstance(error, Damage) else TRUNCATED


def _sized(value: bytes, at: int) -> tuple[bytes, int]:
    start, end = sized_start(value, at)
    if end > len(value):
        raise Damage(TRUNCATED)
    return value[start:end], end


def _optional(value: bytes, at: int) -> tuple[bytes | None, int]:
    return _sized(value, at + 1) if _branch(value, at) else (None, at + 1)


def _branch(value: bytes, at: int) -> bool:
    """Return whether a union with null has a value."""
    if value[at] not in (0, 2):
        raise Damage("a union has an index other than 0 and 1")
    return value[at] == 2


def _skip_headers(value: bytes, at: int) -> int:
    """Return the end of the headers: a map of text for applications, which Replicate leaves null (§1)."""
    if not _branch(value, at):
        return at + 1
    at += 1
    while True:
        count, at, end = read_count(value, at, len(value))
        if not count:
            return at
        for _ in range(2 * count):
            at = _sized(value, at)[1]
        check_block(count, at, end, len(value))


def _schema_id(raw: bytes | None) -> str | None:
    if raw and len(raw) > MAX_SCHEMA_ID_CHARS:
        reason = f"messageSchemaId has {len(raw)} bytes, but only {MAX_SCHEMA_ID_CHARS} are allowed"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path="$.messageSchemaId")
    schema_id = _decoded(raw, "messageSchemaId") if raw else None
    check_schema_id(schema_id, "$.messageSchemaId")
    return schema_id


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MessageError(ErrorCode.MALFORMED_AVRO, "a string is not valid UTF-8", path=f"$.{name}") from None


# -- Confluent's frame: byte 00, schema id, datum

FRAME_BYTES = 5


def registry_id(framed: bytes) -> int:
    """Return the schema id from a value that begins with byte 00.

    Raises:
        MessageError: FRAMING if the frame itself is truncated.
    """
    if len(framed) < FRAME_BYTES:
        reason = f"a Confluent frame has only {len(framed)} bytes; expected at least {FRAME_BYTES}"
        raise MessageError(ErrorCode.FRAMING, reason)
    return int.from_bytes(framed[1:FRAME_BYTES], "big")
