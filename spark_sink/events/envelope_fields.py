"""Decode the fields of events that few tables need. These fields are decoded from the raw record only if they are
needed, so that other tables do not pay for them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import fastavro
import msgspec
import pyarrow as pa

from cdc_core.wire_format import WRITER_SCHEMA, datum
from spark_sink.events.wire_format import reader_schema, record_bytes
from spark_sink.model.event import Event

_SCHEMA = reader_schema("id", "before")

# The columns in an image, each with its value as text.
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Details(NamedTuple):
    """Envelope fields (docs/design.md §4.1)."""

    id: str
    before: str | None


def details(records: pa.Table, events: Sequence[Event]) -> list[Details]:
    """Return the fields in `Details` for each event.

    Raises:
        RawRecordMissing: the records were not sent with the events.
    """
    return [_read(value) for value in record_bytes(records, [event.index for event in events])]


def _read(value: bytes | None) -> Details:
    found: Any = fastavro.schemaless_reader(io.BytesIO(datum(value or b"") or b""), WRITER_SCHEMA, _SCHEMA)
    return Details(found["id"], found["before"])


def image_columns(image: str | bytes | None) -> dict[str, msgspec.Raw]:
    """Return the columns in an image, or no columns if the image is missing or invalid."""
    try:
        return _MEMBERS.decode(image) if image else {}
    except (msgspec.DecodeError, RecursionError):
        return {}


def with_full_after_image(event: Event, before: str | None) -> Event:
    """Return the event with everything that is known about its row in `after`: the key and, for a delete, the before
    image.
    """
    image: str | bytes | None = before if event.op == "d" else event.after
    columns = image_columns(image)
    if image and not columns and image not in ("{}", b"{}"):
        return event  # not an image: reported when its values are read
    whole = msgspec.json.encode({**image_columns(event.key), **columns})
    return msgspec.structs.replace(event, after=whole)
