"""Write rows by key, for consumers that keep the newest value of each key. A record contains the whole row, or is a
tombstone.

Such a consumer reads a missing column as NULL. A row is therefore written completely or not at all, unless the operator
states that consumers can handle partial rows. Rows and key changes are determined as for Debezium consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent, TableSchema
from translator._native.layout import UpsertOperation
from translator.codecs.debezium import image_row
from translator.codecs.debezium.form import FormOf, Keys, Rows, plain, with_schema
from translator.codecs.debezium.images import Columns, changes, refusal, told_by
from translator.codecs.debezium.native import block_of, projected_columns
from translator.codecs.debezium.options import Options as ImageOptions
from translator.codecs.record import Record, record_headers, record_key_head
from translator.errors import MessageError


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options for the `upsert` codec. docs/upsert.md explains each."""

    key: Literal["table", "columns"] = "table"
    """The record key. It includes the table name, or only the columns if a topic has a single table."""

    schema_block: bool = False
    """Write values and keys in the format of Connect's JSON converter, `{"schema": …, "payload": …}`."""

    unavailable: Literal["fail", "omit"] = "fail"
    """The policy for a row that has an unknown column."""

    truncate: Literal["fail", "drop"] = "fail"
    """The policy for truncates. No record can express it."""

    def __post_init__(self) -> None:
        if self.schema_block and self.key != "columns":
            raise ValueError(
                "schema_block requires key: columns, because a Connect schema cannot describe a key that "
                "contains a table name"
            )


class _UpsertRow(NamedTuple):
    """A row, or a tombstone if it has no columns. `missing` lists the columns of the row whose values are not known."""

    key: Columns
    columns: Columns | None = None
    missing: tuple[str, ...] = ()


class _Blocks:
    """The schema blocks for a table, cut out of keys and values that the codec writes."""

    def __init__(self, form: Rows) -> None:
        self._form = form

    def value(self, before: bytes | None, after: bytes | None, commit_us: int | None) -> bytes:
        return block_of(self._form.row(_columns(after or b"{}")))

    def key(self, key: bytes) -> bytes:
        return block_of(self._form.key(_columns(key)))


_columns = msgspec.json.Decoder(Columns).decode
_DEFAULTS = Options()
_FORMS: Mapping[bool, Callable[[], FormOf]] = {False: plain, True: with_schema}


class UpsertCodec:
    """Rows as key and value. DDL, transactions and watermarks have no record."""

    name = "upsert"

    def __init__(self, options: Options = _DEFAULTS) -> None:
        self._options = options
        self._form_of = _FORMS[options.schema_block]()
        # Consumers do not read old images, so none is required.
        self._images = ImageOptions(
            missing_before=("as_create", "partial", "drop_event"), unavailable=options.unavailable
        )

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return one record for a row, two for a changed key, and none for a row without a key.

        Raises:
            MessageError: an option rejects the event, or the format cannot express it faithfully.
        """
        if event.kind != "row":
            return []
        form = self._form_of(event, schema)
        try:
            return [self._record(event, form, row) for row in self._rows(event, schema, form)]
        except MessageError as error:
            raise told_by(self.name, error) from None

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> UpsertOperation:
        return UpsertOperation(
            rejects=event.op == "t" or self._may_lack_columns(event, schema),
            deletes=event.op == "d",
            omits=self._options.unavailable == "omit",
            by_columns=self._options.key == "columns",
            columns=projected_columns(schema),
            blocks=_Blocks(self._form_of(event, schema)) if self._options.schema_block else None,
        )

    def _may_lack_columns(self, event: ChangeEvent, schema: TableSchema | None) -> bool:
        return event.op == "u" and schema is None and self._options.unavailable == "fail"

    def _rows(self, event: ChangeEvent, schema: TableSchema | None, form: Keys) -> list[_UpsertRow]:
        if event.op == "t":
            return self._truncated()
        row = image_row(event, schema, form)
        if row.key is None:
            if row.key_old is None and "KEY_INCOMPLETE" not in (event.notes or ()):
                raise refusal("the table's key is unknown; declare it under `tables` of the source")
            return [_UpsertRow(row.key_old)] if row.key_old is not None else []
        if event.op == "d":
            return [_UpsertRow(row.key)]
        if self._may_lack_columns(event, schema):
            remedy = "declare the columns of the table, or choose unavailable: omit"
            raise refusal(f"without a schema, the row may be incomplete; {remedy}")
        return [
            _UpsertRow(change.key, change.after, change.missing)
            for change in changes(row, self._images)
            if change.key is not None
        ]

    def _truncated(self) -> list[_UpsertRow]:
        if self._options.truncate == "drop":
            return []
        raise refusal(
            "this format cannot represent a truncate; to skip it, set truncate: drop, but consumers then keep the rows"
        )

    def _record(self, event: ChangeEvent, form: Rows, row: _UpsertRow) -> Record:
        headers = record_headers(event)
        if row.missing:
            headers.append(("cdc-unavailable", msgspec.json.encode(row.missing)))
        value = None if row.columns is None else form.row({**row.key, **row.columns})
        return Record(self._key(event, form, row.key), value, headers)

    def _key(self, event: ChangeEvent, form: Keys, columns: Columns) -> bytes:
        if self._options.key == "columns":
            return form.key(columns)
        head = record_key_head(event.source, event.db, event.schema, event.table)
        return head + b"," + form.key(columns) + b"]"
