"""Masked copies of Qlik messages in JSON."""

from __future__ import annotations

import msgspec

from translator.dialects._masked_json import Part, Path, masked_json
from translator.dialects._masked_values import MaskedValues
from translator.dialects.qlik.frame import JSON, framing
from translator.dialects.qlik.sections import BEFORE, DATA, HEADER_NAMES, HEADERS, SEPARATOR
from translator.errors import MessageError, Unmaskable

_AROUND = frozenset({"magic", "type", "headers", "messageSchemaId", "messageSchema"})
_DESCRIBING = frozenset({"schemaId", "lineage", "tableStructure", "dataSchema", HEADERS})
"""Members of a message that say nothing of a row: all of its metadata, and the headers."""

_COLUMN_HEADERS = frozenset(f"{HEADERS}{SEPARATOR}{name}" for name in HEADER_NAMES)


def masked_copy(value: bytes, masked: MaskedValues) -> bytes:
    """Return the message with other values of rows.

    Raises:
        Unmaskable: it is no JSON.
    """
    try:
        form = framing(value)
        root = msgspec.json.decode(value) if form == JSON else None
    except (MessageError, msgspec.DecodeError, RecursionError):
        raise Unmaskable("it is not JSON") from None
    if not isinstance(root, dict):
        raise Unmaskable("it is Avro: the bytes of a row are told apart by its metadata alone")
    body = root.get("message")
    # Headers beside rows that are objects are no columns; without such an object nothing tells them apart.
    beside = frozenset(HEADER_NAMES) if isinstance(root.get(DATA, root.get(BEFORE)), dict) else frozenset()

    inside = _DESCRIBING | _COLUMN_HEADERS
    around = inside | _AROUND | beside

    def part(path: Path) -> Part:
        if path[:1] == ("message",) and isinstance(body, dict):
            path = path[1:]
            kept = inside
        else:
            kept = around
        return "keep" if not kept.isdisjoint(path[:1]) else "value"

    return masked_json(value, masked, part)
