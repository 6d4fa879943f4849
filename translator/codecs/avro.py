"""Avro: a header that identifies the schema, followed by the datum.

Without a registry, the value begins with the header of Avro's single-object encoding: C3 01 and the schema fingerprint.
With a registry, it begins with Confluent's header: 00 and the id of the schema in the registry. The first byte
distinguishes the two from each other and from JSON.
"""

from __future__ import annotations

import io
from functools import partial

from cdc_core.envelope import ChangeEvent, TableSchema, schema_text
from cdc_core.wire_format import FINGERPRINT, SINGLE_OBJECT, event_of_datum
from translator._native.layout import AvroOperation
from translator.codecs import _datum
from translator.codecs.record import Record, record_headers, record_key
from translator.codecs.registered import TableSchemas

HEADER = SINGLE_OBJECT
"""The header of every value if no registry is configured."""

if FINGERPRINT.hex() != _datum.FINGERPRINT:
    raise RuntimeError(
        f"the envelope's schema is {FINGERPRINT.hex()}, but codecs/_datum.py writes {_datum.FINGERPRINT}; update "
        "the fields in that module, then the fingerprint"
    )


def confluent_header(schema_id: int) -> bytes:
    """Return the five-byte header for a schema with this id in a registry.

    Raises:
        ValueError: not an id that a registry assigns.
    """
    if not 0 < schema_id < 1 << 31:
        raise ValueError(
            f"the registry returned the invalid schema id {schema_id}; expected a number from 1 to {(1 << 31) - 1}"
        )
    return b"\x00" + schema_id.to_bytes(4, "big")


class AvroCodec:
    """The default codec."""

    name = "avro"

    def __init__(self, header: bytes = HEADER) -> None:
        self._header = header

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        return [Record(record_key(event), _datum.encode_datum(event, self._header), record_headers(event))]

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> AvroOperation:
        return AvroOperation(lambda: self._header)

    def decode(self, value: bytes) -> ChangeEvent:
        """Return the event in a record value.

        Raises:
            ValueError: the header is wrong, or the bytes after it are not a datum in this envelope version.
        """
        header = value[: len(self._header)]
        if header != self._header:
            raise ValueError(f"expected the header {self._header.hex()}, but found {header.hex()}")
        body = io.BytesIO(value[len(self._header) :])
        event = event_of_datum(body)
        if body.read(1):
            raise ValueError("unexpected bytes follow the datum")
        return event


class RoutedAvroCodec:
    """The codec for outputs whose topic depends on the event. The envelope is registered under one subject per topic.

    Args:
        schemas: returns the envelope schema's id under a subject.
    """

    name = AvroCodec.name

    def __init__(self, schemas: TableSchemas) -> None:
        self._schemas = schemas
        self._text = schema_text()

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return an event's record.

        Raises:
            UnregisteredSchema: the schema id under the topic's subject is not known yet.
            MessageError: the registry rejected the schema under that subject.
        """
        value = _datum.encode_datum(event, self._header(event))
        return [Record(record_key(event), value, record_headers(event))]

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> AvroOperation:
        return AvroOperation(partial(self._header, event))

    def _header(self, event: ChangeEvent) -> bytes:
        return confluent_header(self._schemas.ids(f"{self._schemas.topic_of(event)}-value", self._text))
