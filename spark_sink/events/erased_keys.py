"""Recognize the events of rows that an operator erased. The keys themselves are not stored, only their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from cdc_core.table_id import TableId
from spark_sink.events.arrow_values import image_value
from spark_sink.events.envelope_fields import image_columns
from spark_sink.events.grouping import typed_key_texts
from spark_sink.events.quarantine import Rejected
from spark_sink.events.row_keys import removal
from spark_sink.events.shared_tables import with_source
from spark_sink.model.event import APART, Event, Key
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import SOURCE, Mode


class RowKey(Struct, frozen=True):
    """The key of an erased row. It consists of columns in the table, and a digest of their values."""

    columns: tuple[str, ...]
    digest: str

    def within(self, shape: TableShape) -> TableShape | None:
        """Return a table's shape with these columns as its key, or None if the table lacks one of them."""
        return _keyed(shape, self.columns)


def _keyed(shape: TableShape, columns: tuple[str, ...]) -> TableShape | None:
    return msgspec.structs.replace(shape, key=columns) if shape.types.keys() >= {*columns} else None


ErasedKeys = Mapping[RowKey, Mapping[int, int]]
"""The offsets in the canonical topic from which a row's events are applied again. Each erased key of a table has one
offset per partition.
"""


# A decimal has up to 38 digits. The default context would round it to 28 digits, and different keys would be equal.
_ALL_DIGITS = Context(prec=38)


def digest_of(key: Key) -> str:
    """Return the digest of a row's key. It stays the same when the type of a key column is widened."""
    return hashlib.sha256(msgspec.json.encode([_text(value) for value in key])).hexdigest()


def _text(value: Any) -> str | bool:
    if isinstance(value, Decimal):
        return f"{value.normalize(_ALL_DIGITS):f}"
    # Zero has two representations.
    plain = image_value(value + 0.0 if isinstance(value, float) else value)
    return plain if isinstance(plain, str | bool) else str(plain)


def digests_of(texts: Iterable[str], shape: TableShape) -> dict[str, str]:
    """Return the digests of the keys in these strings. A string without a valid key has no digest."""
    return {text: digest_of(key) for text, key in typed_key_texts(texts, shape)[0].items()}


def key_texts(event: Mapping[str, Any], table: TableId, shape: TableShape) -> set[str]:
    """Return every string that might be the key of a row that an event changes. These are the keys of the event and the
    key columns in its images. A declaration may replace the event's key, and events of a changelog may have none.
    """
    names = [name for name in shape.key_sent_as if name != SOURCE]
    images = [image_columns(event[name]) for name in ("before", "after")]
    found = {event["key"], event["key_old"]} - {None}
    found |= {_projected(columns, names) for columns in images if columns.keys() >= {*names}}
    return {with_source(text, table) for text in found} if SOURCE in shape.types else found


def without_erased(
    events: Sequence[Event], records: pa.Table, erased: ErasedKeys, shape: TableShape
) -> Sequence[Event]:
    """Return the events without those of the erased rows.

    If a row takes over an erased key, or an erased row gets another key, a mirror or a history keeps only the other
    row's part of the event. A changelog drops the whole event, because both halves contain the key.
    """
    for columns in dict.fromkeys(key.columns for key in erased):
        of = {key.digest: offsets for key, offsets in erased.items() if key.columns == columns}
        keyed = _keyed(shape, columns)
        if keyed is not None and (places := _early(records, of.values())):
            events = _without(events, of, places, keyed)
    return events


def _early(records: pa.Table, ends: Iterable[Mapping[int, int]]) -> Mapping[int, tuple[int, int]]:
    """Return the partition and offset of each record that precedes one of these ends, by the record's index. Such
    records appear only if the topic is read again.
    """
    last: dict[int, int] = {}
    for end in ends:
        last |= {partition: max(offset, last.get(partition, 0)) for partition, offset in end.items()}
    offsets = records.select(["partition", "offset"])
    least = offsets.group_by("partition", use_threads=False).aggregate([("offset", "min")]).to_pylist()
    if all(row["offset_min"] >= last.get(row["partition"], 0) for row in least):
        return {}
    places = zip(*(column.to_pylist() for column in offsets.columns), strict=True)
    return {index: (one, offset) for index, (one, offset) in enumerate(places) if offset < last.get(one, 0)}


def _without(
    events: Sequence[Event],
    erased: Mapping[str, Mapping[int, int]],
    places: Mapping[int, tuple[int, int]],
    shape: TableShape,
) -> Sequence[Event]:
    appends = shape.mode is Mode.CHANGELOG
    texts = {
        event.index: _key_in_images(event, shape.key_sent_as) if appends else event.key
        for event in events
        if event.index in places and event.op not in APART
    }
    moved = (event.key_old for event in events if event.index in texts and event.key_old is not None)
    digests = digests_of({*texts.values(), *moved}, shape)

    def is_erased(event: Event, text: str | None) -> bool:
        partition, offset = places[event.index]
        return offset < erased.get(digests.get(text or "", ""), {}).get(partition, 0)

    if erased.keys().isdisjoint(digests.values()):
        return events
    kept: list[Event] = []
    for event in events:
        text = texts.get(event.index)
        key, old = (text is not None and is_erased(event, one) for one in (text, event.key_old))
        if not key and not old:
            kept.append(event)
        elif not appends and event.key_old is not None and key is not old:
            kept.append(removal(event) if key else msgspec.structs.replace(event, key_old=None))
    return kept


def _key_in_images(event: Event, names: Sequence[str]) -> str:
    columns = {**image_columns(event.key), **image_columns(event.after)}
    return _projected(columns, names) if columns.keys() >= {*names} else ""


def _projected(columns: Mapping[str, msgspec.Raw], names: Sequence[str]) -> str:
    return msgspec.json.encode({name: columns[name] for name in names}).decode()


def not_of_erased(
    rejected: Sequence[Rejected], records: pa.Table, erased: ErasedKeys, shape: TableShape
) -> list[Rejected]:
    """Return the rejected records, except those of erased rows."""
    kept = []
    for one in rejected:
        (row,) = records.slice(one.event, 1).select([*TableId._fields, *_NAMED]).to_pylist()
        source = TableId(*(row[name] for name in TableId._fields))
        if not any(
            row["offset"] < offsets.get(row["partition"], 0) and is_of(key, {**row, "before": None}, source, shape)
            for key, offsets in erased.items()
        ):
            kept.append(one)
    return kept


def is_of(key: RowKey, event: Mapping[str, Any], source: TableId, shape: TableShape) -> bool:
    """Return whether an event changes the row with this key."""
    keyed = key.within(shape)
    if keyed is None:
        return False
    return key.digest in digests_of(key_texts(event, source, keyed), keyed).values()


# The columns that show which row a record changes, and where the record is.
_NAMED = ("key", "key_old", "after", "partition", "offset")
