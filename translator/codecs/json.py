"""Plain JSON: the envelope's fields in order, keys and row images as nested objects."""

from __future__ import annotations

import msgspec

from translator.codecs.record import Record, record_headers, record_key
from translator.envelope import ChangeEvent

_IMAGES = ("key", "key_old", "before", "after")


class JsonCodec:
    """One JSON object a record; also what `translator translate` prints."""

    name = "json"

    def encode(self, event: ChangeEvent) -> list[Record]:
        fields = msgspec.structs.asdict(event)
        for name in _IMAGES:
            text = fields[name]
            if text is not None:
                fields[name] = msgspec.Raw(text.encode())
        return [Record(record_key(event), msgspec.json.encode(fields), record_headers(event))]

    def decode(self, value: bytes) -> ChangeEvent:
        """The event in a record value.

        Raises:
            msgspec.DecodeError: not this envelope.
        """
        fields = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        for name in _IMAGES:
            raw = bytes(fields.get(name, b"null"))
            if raw != b"null":
                fields[name] = msgspec.Raw(msgspec.json.encode(raw.decode()))
        return msgspec.json.decode(msgspec.json.encode(fields), type=ChangeEvent)
