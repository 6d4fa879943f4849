"""Write events in Debezium's JSON envelope, for consumers that know this envelope.

The envelope contains less information than the canonical event. Most of this package deals with what it cannot express.
Debezium consumers require an old image for every update and delete, read a missing column as NULL, and represent a key
change only as a delete and a create. docs/debezium.md explains what is written in which case. `images` decides what to
write. `form` and `connect` write the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import DebeziumOperation
from translator.codecs.debezium.envelope import payload
from translator.codecs.debezium.form import Envelopes, FormOf, Keys, plain, with_schema
from translator.codecs.debezium.images import (
    Columns,
    ConnectChange,
    ImageRow,
    changes,
    operation_of,
    refusal,
    told_by,
)
from translator.codecs.debezium.native import json_operation
from translator.codecs.debezium.options import Options
from translator.codecs.record import Record, record_headers
from translator.errors import MessageError

__all__ = ["DebeziumCodec", "Options", "envelopes", "image_row"]

_FORMS: Mapping[bool, Callable[[], FormOf]] = {False: plain, True: with_schema}
_DEFAULTS = Options()
_COLUMNS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class DebeziumCodec:
    """Rows as Debezium events. DDL, transactions and watermarks have no record."""

    name = "debezium"

    def __init__(self, options: Options = _DEFAULTS) -> None:
        self._options = options
        self._form_of = _FORMS[options.schema_block]()

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> DebeziumOperation:
        return json_operation(self._options, self._form_of, event, schema)

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return the records of an event. A key change has two, and a tombstone may follow a delete.

        Raises:
            MessageError: an option rejects the event, or the format cannot express it faithfully.
        """
        try:
            return [] if event.kind != "row" else envelopes(event, schema, self._form_of(event, schema), self._options)
        except MessageError as error:
            raise told_by(self.name, error) from None


def envelopes(event: ChangeEvent, schema: TableSchema | None, form: Envelopes, options: Options) -> list[Record]:
    """Return the records for a row event, if any.

    Raises:
        MessageError: an option rejects the event, or the format cannot express it faithfully. The text omits the codec
            name.
    """
    written = enumerate(changes(image_row(event, schema, form), options))
    return [record for index, change in written for record in _records(event, form, change, index, options.tombstones)]


def _records(event: ChangeEvent, form: Envelopes, change: ConnectChange, index: int, tombstones: bool) -> list[Record]:
    key = None if change.key is None else form.key(change.key)
    headers = record_headers(event)
    if change.missing:
        headers.append(("cdc-unavailable", msgspec.json.encode(change.missing)))
    if change.other_key is not None:
        name, columns = change.other_key
        headers.append((name, form.key(columns)))
    records = [Record(key, form.value(payload(event, change, index)), headers)]
    if tombstones and change.op == "d" and key is not None:
        records.append(Record(key, None, headers))
    return records


def image_row(event: ChangeEvent, schema: TableSchema | None, form: Keys) -> ImageRow:
    """Parse a row's images, without values that the format cannot express.

    Raises:
        MessageError: a key column contains such a value.
    """
    unfit: set[str] = set()

    def opened(text: str | None) -> Columns | None:
        if text is None:
            return None
        columns = _COLUMNS.decode(text)
        unfit.update(form.fit(columns))
        return columns

    key, key_old = opened(event.key), opened(event.key_old)
    if unfit:
        raise refusal(f"key column {min(unfit)!r} has a value that cannot be represented in a schema block")
    before, after = opened(event.before), opened(event.after)
    unfit.update(issue.col for issue in event.issues or ())
    return ImageRow(
        op=operation_of(event),
        key=key,
        key_old=key_old,
        before=before,
        after=after,
        before_state=event.before_state,
        changed=None if event.changed is None else set(event.changed),
        without_form=unfit,
        withheld=unfit.union(event.unavailable or ()),
        schema=schema,
    )
