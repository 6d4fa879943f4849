"""Write plain JSON: the fields of the envelope in order, with keys and row images as nested objects."""

from __future__ import annotations

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.wire_format import IMAGES, event_of_json
from translator._native.layout import JsonOperation
from translator.codecs.record import Record, record_headers, record_key


class JsonCodec:
    """One JSON object per record. `translator translate` prints the same format."""

    name = "json"

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        fields = msgspec.structs.asdict(event)
        for name in IMAGES:
            text = fields[name]
            if text is not None:
                fields[name] = msgspec.Raw(text.encode())
        return [Record(record_key(event), msgspec.json.encode(fields), record_headers(event))]

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> JsonOperation:
        (record,) = self.encode(event)
        names, _, rest = (record.value or b"").partition(b',"pos":')
        schema_id = rest.partition(b'"schema_id":')[2].partition(b',"tx":')[0]
        return JsonOperation(names[names.index(b'"kind":') :], schema_id)

    def decode(self, value: bytes) -> ChangeEvent:
        """Return the event in a record value. Nullable fields may be missing.

        Raises:
            msgspec.DecodeError: not this envelope.
        """
        return event_of_json(value)
