"""Plain JSON: the envelope's fields in order, keys and row images as nested objects."""

from __future__ import annotations

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema, avro_schema
from translator.codecs.record import Record, record_headers, record_key

IMAGES = ("key", "key_old", "before", "after")
"""The fields that hold JSON text in the event and objects in the JSON form."""

_MAY_BE_MISSING = [field["name"] for field in avro_schema()["fields"] if isinstance(field["type"], list)]
_NULL = msgspec.Raw(b"null")


class JsonCodec:
    """One JSON object a record; also what `translator translate` prints."""

    name = "json"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        fields = msgspec.structs.asdict(event)
        for name in IMAGES:
            text = fields[name]
            if text is not None:
                fields[name] = msgspec.Raw(text.encode())
        return [Record(record_key(event), msgspec.json.encode(fields), record_headers(event))]

    def decode(self, value: bytes) -> ChangeEvent:
        """The event in a record value; a field that may be null may be missing.

        Raises:
            msgspec.DecodeError: not this envelope.
        """
        fields = dict.fromkeys(_MAY_BE_MISSING, _NULL) | msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        for name in IMAGES:
            raw = bytes(fields[name])
            if raw != b"null":
                fields[name] = msgspec.Raw(msgspec.json.encode(raw.decode()))
        return msgspec.json.decode(msgspec.json.encode(fields), type=ChangeEvent)
