"""Erase a row from its table, from the deleted rows next to it, from earlier versions, and from stored events.

The first step records the digest of the row's key, with the offsets that the sink has reached in the canonical topic.
From then on, the sink ignores the row's events before these offsets. Neither a repeated batch nor a rebuild can bring
the row back. An interrupted command can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from deltalake import DeltaTable

from cdc_core.table_id import TableId
from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.requests import RequestAnswer
from spark_sink.errors import ConfigError, FatalError
from spark_sink.events import parking, quarantine
from spark_sink.events.arrow_values import image
from spark_sink.events.erased_keys import RowKey, digest_of, digests_of, is_of
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_naming import TablePattern
from spark_sink.tables.delta.control_tables import rows_of
from spark_sink.tables.delta.open_table import literal
from spark_sink.tables.history_reader import taken_keys_property
from spark_sink.tables.locations import location
from spark_sink.tables.mirror_reader import MirrorReader
from spark_sink.tables.protocols import HistoryTable, OpenTable, Tables


class RowErasure(Protocol):
    """Erases rows from the files of tables."""

    def erase(self, name: str, key: RowKey, properties: Mapping[str, str]) -> int:
        """Set properties, delete the rows with this key from the newest version, and return the number of deleted
        rows.
        """

    def purge(self, name: str) -> int:
        """Delete all files that only earlier versions need, and return the number of deleted data files."""


def parse_key(text: str, shape: TableShape) -> RowKey:
    """Return the key that an operator has written as a JSON object. A changelog has no key, so any of its columns can
    identify the rows.

    Raises:
        ConfigError: the text is not a key of the table.
    """
    try:
        values = image(text)
    except ValueError:
        values = {}
    known = {*shape.key} or {*shape.types}
    if not values or not values.keys() <= known or (shape.key and values.keys() != known):
        columns = ", ".join(sorted(known))
        raise ConfigError(f"the key must be a JSON object with the table's key columns ({columns})")
    keyed = msgspec.structs.replace(shape, key=shape.key or tuple(values))
    sent = {sent: values[stored] for sent, stored in zip(keyed.key_sent_as, keyed.key, strict=True)}
    digests = digests_of([msgspec.json.encode(sent).decode()], keyed)
    if not digests:
        types = ", ".join(f"{column} {shape.types[column]}" for column in keyed.key)
        raise ConfigError(f"the key does not fit the table's columns ({types})")
    return RowKey(keyed.key, *digests.values())


class Erase:
    """Runs the command between batches."""

    def __init__(
        self, warehouse: str, tables: Tables, control: ControlTables, pattern: TablePattern, files: RowErasure
    ) -> None:
        self._warehouse = warehouse
        self._tables = tables
        self._control = control
        self._pattern = pattern
        self._files = files

    def __call__(self, target: str, argument: str | None) -> RequestAnswer:
        key, table = msgspec.json.decode(argument or "", type=RowKey), self._tables.open(target)
        if table is None:
            raise FatalError(f"table {target!r} does not exist")
        batches = self._control.batches
        self._control.erased.add(target, key, batches.topic(), batches.reached())
        rows = self._files.erase(target, key, _without_taken_key(table, key))
        if isinstance(table, MirrorReader):
            rows += table.deleted_rows.erase(lambda one: key.digest == digest_of(one))
        found = [self._erase_events(name, target, table.shape, key) for name in (parking.NAME, quarantine.NAME)]
        events, unreadable = (sum(counts) for counts in zip(*found, strict=True))
        files = sum(self._files.purge(name) for name in (target, parking.NAME, quarantine.NAME))
        known = f". Unreadable records in quarantine that may contain the row: {unreadable}" if unreadable else ""
        return RequestAnswer(
            f"rows erased: {rows}; stored events erased: {events}; files of earlier versions deleted: {files}. Kafka "
            f"topics, backups and copies of the table still have the row{known}"
        )

    def _erase_events(self, name: str, target: str, shape: TableShape, key: RowKey) -> tuple[int, int]:
        """Delete the parked or quarantined events that change the row. Return how many were deleted, and how many
        records are unreadable.
        """
        places, unreadable = [], 0
        for row in rows_of(self._warehouse, name, list(quarantine.COLUMNS)):
            source, event = TableId(*(row[one] for one in TableId._fields)), quarantine.event_in(row["value"])
            if event is None:
                unreadable += row["value"] is not None
                continue
            is_ours = source.table is not None and target == self._pattern.target(source)
            if is_ours and is_of(key, event, source, shape):
                places.append({one: row[one] for one in _PLACE})
        for first in range(0, len(places), _EVENTS_AT_ONCE):
            DeltaTable(location(self._warehouse, name)).delete(
                " OR ".join(f"({_equal(place)})" for place in places[first : first + _EVENTS_AT_ONCE])
            )
        return len(places), unreadable


# The columns that identify a stored event, among those of all topics and pipelines.
_PLACE = ("kafka_partition", "kafka_offset", "event_id", *TableId._fields)

# The number of events that one commit deletes.
_EVENTS_AT_ONCE = 200


def _equal(place: Mapping[str, Any]) -> str:
    """Return the condition for a stored event in deltalake's SQL."""
    tests = (
        f"`{name}` IS NULL" if value is None else f"`{name}` = {literal(value) if isinstance(value, str) else value}"
        for name, value in place.items()
    )
    return " AND ".join(tests)


def _without_taken_key(table: OpenTable, key: RowKey) -> Mapping[str, str]:
    """Return the property of a history without the row's key, if it contains the key."""
    if not isinstance(table, HistoryTable):
        return {}
    names = table.shape.key_sent_as
    texts = [msgspec.json.encode(dict(zip(names, one.key, strict=True))).decode() for one in table.taken_keys]
    digests = digests_of(texts, table.shape)
    kept = [one for one, text in zip(table.taken_keys, texts, strict=True) if digests.get(text) != key.digest]
    return taken_keys_property(kept) if len(kept) < len(texts) else {}
