"""Events as Debezium's JSON envelope, for readers that know that form and not ours. It says less than the event.

What it cannot say is the reason for most of this package. Its readers demand an old image with every update and delete,
take a column that is missing for NULL, and know a changed key only as a delete and a create. docs/debezium.md tells the
operator what is written when; `images` decides it, `form` and `connect` write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import ProjectionForm
from translator.codecs.debezium.envelope import payload
from translator.codecs.debezium.form import Envelopes, FormOf, Keys, plain, with_schema
from translator.codecs.debezium.images import Columns, ConnectChange, ImageRow, changes, refusal, told_by
from translator.codecs.debezium.native import native_projection
from translator.codecs.debezium.options import Options
from translator.codecs.record import Record, record_headers
from translator.errors import MessageError

__all__ = ["DebeziumCodec", "Options", "envelopes", "image_row"]

_FORMS: Mapping[bool, Callable[[], FormOf]] = {False: plain, True: with_schema}
_DEFAULTS = Options()
_COLUMNS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class DebeziumCodec:
    """Rows as Debezium's events; DDL, transactions and watermarks have no record."""

    name = "debezium"

    def __init__(self, options: Options = _DEFAULTS) -> None:
        self._options = options
        self._form_of = _FORMS[options.schema_block]()

    def native(self, max_record: int) -> ProjectionForm:
        """Return what the native path has to know of a projection.

        Args:
            max_record: the bytes that a record may have.
        """
        return native_projection(self._options, self._form_of, max_record)

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """None, one or more records: a changed key gives two, and a tombstone may follow a delete.

        Raises:
            MessageError: an option refuses the event, or no honest form of it exists.
        """
        try:
            return [] if event.kind != "row" else envelopes(event, schema, self._form_of(event, schema), self._options)
        except MessageError as error:
            raise told_by(self.name, error) from None


def envelopes(event: ChangeEvent, schema: TableSchema | None, form: Envelopes, options: Options) -> list[Record]:
    """Return the records of the event of a row: none, one or more.

    Raises:
        MessageError: an option refuses the event, or no honest form of it exists; it does not name the codec.
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
    """Open the images of a row, without the values for which a form has no word.

    Raises:
        MessageError: one of them stands in a key column.
    """
    if event.op is None:
        raise ValueError("an event of kind row has no op")
    unfit: set[str] = set()

    def opened(text: str | None) -> Columns | None:
        if text is None:
            return None
        columns = _COLUMNS.decode(text)
        unfit.update(form.fit(columns))
        return columns

    key, key_old = opened(event.key), opened(event.key_old)
    if unfit:
        raise refusal(f"key column {min(unfit)!r} has a value that a schema block cannot say")
    before, after = opened(event.before), opened(event.after)
    unfit.update(issue.col for issue in event.issues or ())
    return ImageRow(
        op=event.op,
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
