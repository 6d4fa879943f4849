"""Write a key change as two events, a delete and an insert, for consumers that cannot update a key.

An insert writes the whole row, so the new row must be complete. If the event says that a missing column did not change,
its value comes from the old image, as for Debezium consumers.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import AvroOperation, JsonOperation
from translator.codecs.debezium import image_row
from translator.codecs.debezium.form import plain
from translator.codecs.debezium.images import Columns, moved_row
from translator.codecs.record import Record

DELETE_HALF, INSERT_HALF = "/d", "/c"
"""The suffixes of the event id for the two halves of a key change."""

_KEYLESS = "KEY_INCOMPLETE"


class EnvelopeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options for the `avro` and `json` codecs."""

    key_change: Literal["one_event", "two_events"] = "one_event"
    """The way in which a key change is written: as an update with `key_old`, or as a delete and an insert."""


class EnvelopeCodec(Protocol):
    """A codec that writes one record per event."""

    name: str

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]: ...

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> AvroOperation | JsonOperation: ...


class SplitKeyChanges:
    """Pass events to another codec. Split an event that removes a row's key into two records."""

    def __init__(self, codec: EnvelopeCodec) -> None:
        self.name = codec.name
        self._codec = codec

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return two records for a key change, otherwise one.

        Raises:
            MessageError: the new row of a key change lacks a column.
        """
        if event.key_old is None:
            return self._codec.encode(event, schema)
        return [record for half in halves(event, schema) for record in self._codec.encode(half, schema)]

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> AvroOperation | JsonOperation:
        return replace(self._codec.native_operation(event, schema), splits_key_changes=True)


def halves(event: ChangeEvent, schema: TableSchema | None) -> tuple[ChangeEvent, ChangeEvent]:
    """Return the delete of the old row and the insert of the new one.

    They are for different rows, so both have the event's position.

    Raises:
        MessageError: the new row lacks a column that the old row could have.
    """
    row = image_row(event, schema, _FORM(event, schema))
    after = moved_row(row)
    notes = [note for note in event.notes or () if note != _KEYLESS]
    gone = replace(
        event,
        id=event.id + DELETE_HALF,
        op="d",
        key=event.key_old,
        key_old=None,
        before=event.key_old if event.before is None else event.before,
        before_state="key" if event.before is None else event.before_state,
        after=None,
        after_state="none",
        changed=None,
        notes=notes or None,
    )
    made = replace(
        event,
        id=event.id + INSERT_HALF,
        op="c",
        key_old=None,
        before=None,
        before_state="none",
        after=msgspec.json.encode(after).decode(),
        after_state=_state(after, row.after, schema, event.after_state),
        changed=None,
    )
    return _known_of(gone, row.before), _known_of(made, after)


_FORM = plain()


def _state(after: Columns, sent: Columns | None, schema: TableSchema | None, state: str) -> str:
    if schema is not None and schema.column_names <= after.keys():
        return "full"
    return state if sent is not None and after.keys() == sent.keys() else "merged"


def _known_of(half: ChangeEvent, image: Columns | None) -> ChangeEvent:
    """Return one half of the key change. Leave out notes and issues about values that its own image contains. They
    belong to the other half.
    """
    there = image or {}
    withheld = [name for name in half.unavailable or () if name not in there]
    issues = [issue for issue in half.issues or () if issue.col not in there]
    return replace(half, unavailable=withheld or None, issues=issues or None)
