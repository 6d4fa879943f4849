"""Parse a Kafka value into its JSON objects, each with distinct field names."""

from __future__ import annotations

from translator.dialects._json import JsonObject, check_distinct, json_type, parse_sequence
from translator.errors import ErrorCode, MessageError
from translator.message import Limits

_SPACE_AND_BOM = b" \t\r\n\xef\xbb\xbf"
_ROWS = frozenset({"$.data", "$.key"})


def read_objects(value: bytes, limits: Limits) -> list[JsonObject]:
    """Return the objects in a value. There is a single one, or there are several, either without separators or one per
    line (§10, Accept).

    Raises:
        MessageError: FRAMING for XML, MALFORMED_JSON, UNSUPPORTED_SHAPE for a value that is not an object,
            INVALID_FIELD for a repeated field, LIMIT_EXCEEDED.
    """
    if value[:1] != b"{" and value.lstrip(_SPACE_AND_BOM)[:1] == b"<":
        raise MessageError(
            ErrorCode.FRAMING, "the value is in the XML record format; configure the writer to send JSON"
        )
    objects = parse_sequence(value, limits, _ROWS)
    if not objects:
        raise MessageError(ErrorCode.MALFORMED_JSON, "the value contains only white space, not a JSON object")
    if len(objects) > limits.rows:
        reason = f"the value contains {len(objects)} objects, but only {limits.rows} are allowed (limits.rows)"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
    for found in objects:
        if not isinstance(found, dict):
            remedy = (
                "; if a record contains several messages, write them end to end or one per line"
                if isinstance(found, list)
                else ""
            )
            reason = f"the value is a JSON {json_type(found)}, not an object{remedy}"
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    check_distinct(value, objects)
    return objects
