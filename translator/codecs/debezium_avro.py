"""Write Debezium's envelope in Avro, with a schema registry. Each table has schemas of its own, and each record refers
to them.

Events are handled as in Debezium's JSON format. Avro has no missing columns, so the operator decides whether NULL may
replace a column that a row lacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, Literal, TypeAlias, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cdc_core.envelope import NAMESPACE, ChangeEvent, TableSchema
from translator._native.layout import AvroTables, DebeziumOperation, NativeAvroTable
from translator.codecs import _datum
from translator.codecs.avro import confluent_header
from translator.codecs.debezium import envelopes
from translator.codecs.debezium.avro_types import AvroTable, KeyKinds, Node, key_kinds
from translator.codecs.debezium.envelope import ConnectSource, Payload, Transaction, payload
from translator.codecs.debezium.images import Columns, ConnectChange, operation_of, refusal, told_by
from translator.codecs.debezium.native import debezium_operation
from translator.codecs.debezium.options import MissingBefore, Truncate
from translator.codecs.debezium.options import Options as ImageOptions
from translator.codecs.record import Record
from translator.codecs.registered import SchemaIds, TableSchemas
from translator.errors import MessageError

_NOTHING: frozenset[str] = frozenset()
_NULL = b"\x00"
_SOME = b"\x02"
_END = b"\x00"
_MAX_FORMS = 1024
"""Maximum number of tables whose schemas are cached. Table names come from messages, so there may be many."""

_columns = msgspec.json.Decoder(Columns).decode

Subject: TypeAlias = Literal["topic", "topic_record"]
Unavailable: TypeAlias = Literal["fail", "null", "placeholder"]

_UNAVAILABLE: Mapping[Unavailable, Literal["omit", "placeholder", "fail"]] = {
    "fail": "fail",
    "null": "omit",
    "placeholder": "placeholder",
}


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options for the `debezium_avro` codec. docs/debezium.md explains each."""

    subject: Subject = "topic"
    """The subjects: `<topic>-key` and `<topic>-value`, or `<topic>-<record>` if a topic has several tables."""

    missing_before: tuple[MissingBefore, ...] = ("merge", "as_create", "partial")
    """The policies for an old image that consumers expect and that is missing."""

    unavailable: Unavailable = "fail"
    """The content of `after` for a column whose value is not in the event."""

    truncate: Truncate = "drop"
    """The policy for truncates. Flink fails on `op` t."""

    tombstones: bool = False
    """Write a tombstone after each delete, for compacted topics."""

    def __post_init__(self) -> None:
        self.images()

    def images(self) -> ImageOptions:
        """Return the options that the image rules use."""
        return ImageOptions(
            missing_before=self.missing_before,
            unavailable=_UNAVAILABLE[self.unavailable],
            truncate=self.truncate,
            tombstones=self.tombstones,
        )


_DEFAULTS = Options()


class DebeziumAvroCodec:
    """Rows as Debezium events. DDL, transactions and watermarks have no record.

    Args:
        schemas: returns ids for table schemas.
    """

    name = "debezium_avro"

    def __init__(self, schemas: TableSchemas, options: Options = _DEFAULTS) -> None:
        self._schemas = schemas
        self._subjects = _SUBJECTS[options.subject]
        self._forms: dict[tuple[object, ...], _AvroForm] = {}
        self._images = options.images()

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]:
        """Return an event's records, as the `debezium` codec does.

        Raises:
            MessageError: an option rejects the event, or the format cannot express it faithfully.
            UnregisteredSchema: the schema id is not known yet.
        """
        if event.kind != "row":
            return []
        try:
            known = event if schema is not None else _without_types(event)
            return envelopes(known, schema, self._form_of(known, schema), self._images)
        except MessageError as error:
            raise told_by(self.name, error) from None

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> DebeziumOperation:
        source = payload(event, ConnectChange(operation_of(event), None, None, None), 0).source
        head, origin = _scalars(source, _SOURCE_HEAD), _scalars(source, _SOURCE_ORIGIN)
        tables = AvroTables(partial(self._native_table, event, schema), schema is None)
        return debezium_operation(self._images, event, schema, head, origin, tables=tables)

    def _native_table(self, event: ChangeEvent, schema: TableSchema | None, key: bytes | None) -> NativeAvroTable:
        """Return the table for rows with this key.

        Raises:
            MessageError: an option rejects the rows, or the format cannot express them faithfully.
        """
        keyed = replace(event, key=None if key is None else key.decode())
        return self._form_of(keyed if schema is not None else _without_types(keyed), schema).native()

    def _form_of(self, event: ChangeEvent, schema: TableSchema | None) -> _AvroForm:
        text = event.key_old if event.key is None else event.key
        kinds = key_kinds(None if text is None else _columns(text), schema)
        if event.key is not None and event.key_old is not None:
            _refuse_other_kinds(kinds, key_kinds(_columns(event.key_old), schema))
        levels = (event.source, event.db, event.schema, event.table)
        known = (*levels, None if schema is None else schema.id, kinds)
        found = self._forms.get(known)
        if found is None:
            table = AvroTable(levels, schema, kinds)
            if len(self._forms) >= _MAX_FORMS:
                self._forms.clear()
            topic = self._schemas.topic_of(event)
            found = self._forms[known] = _AvroForm(table, self._schemas.ids, *self._subjects(topic, table))
        return found


def _refuse_other_kinds(new: KeyKinds, old: KeyKinds) -> None:
    """Reject a key change that also changes the type of the key. A single schema cannot describe both keys. One of the
    two would therefore differ from every earlier key of its row.

    Raises:
        MessageError: a key column has a different type than before.
    """
    for (name, kind), (_, was) in zip(new, old, strict=False):
        if kind != was:
            remedy = "declare the column's type under `tables` of the source"
            raise refusal(f"the type of key column {name!r} changes from {was} to {kind}; {remedy}")


def _without_types(event: ChangeEvent) -> ChangeEvent:
    """Return an event without a schema, reduced to the columns whose type is known.

    Key values reveal their types, as in all keys of the table. In other columns, a number could have any width, and a
    text could stand for bytes. A consumer with the table's schema would fail on such columns, or misread them.

    Raises:
        MessageError: the event has a new image, which would be reduced to its key.
    """
    if event.op == "d":
        return replace(event, before=event.key, before_state="none" if event.key is None else "key")
    if event.op == "t":
        return event
    raise refusal("the row's column types are unknown; declare the columns of the table under `tables` of the source")


def _by_topic(topic: str, table: AvroTable) -> tuple[str, str]:
    return f"{topic}-key", f"{topic}-value"


def _by_record(topic: str, table: AvroTable) -> tuple[str, str]:
    return f"{topic}-{table.key_name}", f"{topic}-{table.value_name}"


_SUBJECTS: Mapping[Subject, Callable[[str, AvroTable], tuple[str, str]]] = {
    "topic": _by_topic,
    "topic_record": _by_record,
}


class _AvroForm:
    """Keys and values for one table with one schema."""

    def __init__(self, table: AvroTable, ids: SchemaIds, key_subject: str, value_subject: str) -> None:
        self._table = table
        self._key = _Header(ids, key_subject, table.key_schema())
        self._value = _Header(ids, value_subject, _envelope(table))

    def native(self) -> NativeAvroTable:
        """Return the table in the extension's format."""
        return self._table.native(self._key.bytes, self._value.bytes)

    def fit(self, columns: Columns) -> Set[str]:
        return _NOTHING

    def key(self, columns: Columns) -> bytes:
        return self._key.bytes() + self._table.key(columns)

    def value(self, payload: Payload) -> bytes:
        before = None if payload.before is None else self._table.known(payload.before)
        images = [_NULL if image is None else _SOME + self._table.row(image) for image in (before, payload.after)]
        tx, names = payload.transaction, payload.primary_key
        return b"".join(
            (
                self._value.bytes(),
                *images,
                _scalars(payload.source, _SOURCE),
                _NULL if tx is None else _SOME + _scalars(tx, _TRANSACTION),
                _scalars(payload, _TIMES),
                _NULL if names is None else _SOME + _names(names),
            )
        )


class _Header:
    """The header for data with one schema. The schema id is requested when the header is first used."""

    def __init__(self, ids: SchemaIds, subject: str, schema: Node) -> None:
        self._ids = ids
        self._subject = subject
        self._text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        self._header: bytes | None = None

    def bytes(self) -> bytes:
        """Return the header.

        Raises:
            UnregisteredSchema, MessageError: see `registered.SchemaIds`.
        """
        if self._header is None:
            self._header = confluent_header(self._ids(self._subject, self._text))
        return self._header


# -- the fields around the images

_Fields: TypeAlias = tuple[tuple[str, str, bool], ...]
"""Each attribute with its Avro type, and a flag that shows whether it can be null."""

_TYPES: Mapping[Any, str] = {str: "string", int: "long"}
_WRITE: Mapping[str, Callable[[Any], bytes]] = {"string": _datum.text, "long": _datum.long}


def _fields(kind: type[Struct], names: tuple[str, ...] | None = None) -> _Fields:
    hints = get_type_hints(kind)
    found = []
    for name in names or kind.__struct_fields__:
        arms = getattr(hints[name], "__args__", (hints[name],))
        found.append((name, _TYPES[arms[0]], type(None) in arms))
    return tuple(found)


_SOURCE = _fields(ConnectSource)
_SOURCE_HEAD = _fields(ConnectSource, ("version", "connector", "name", "snapshot"))
_SOURCE_ORIGIN = _fields(ConnectSource, ("db", "schema", "table", "server", "task"))
"""The fields before and after those that differ between the records of a table's operation."""

_TRANSACTION = _fields(Transaction)
_TIMES = _fields(Payload, ("op", "ts_ms", "ts_us", "ts_ns"))


def _scalars(of: Struct, fields: _Fields) -> bytes:
    parts = []
    for name, kind, optional in fields:
        value = getattr(of, name)
        if not optional:
            parts.append(_WRITE[kind](value))
        else:
            parts.append(_NULL if value is None else _SOME + _WRITE[kind](value))
    return b"".join(parts)


def _names(names: tuple[str, ...]) -> bytes:
    return _datum.long(len(names)) + b"".join(map(_datum.text, names)) + _END if names else _END


def _envelope(table: AvroTable) -> Node:
    return table.envelope_schema(
        lambda row, name: [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", name], "default": None},
            {"name": "source", "type": _record(f"{NAMESPACE}.Source", _SOURCE)},
            {"name": "transaction", "type": ["null", _record("event.block", _TRANSACTION)], "default": None},
            *_nodes(_TIMES),
            {"name": "pkNames", "type": ["null", {"type": "array", "items": "string"}], "default": None},
        ]
    )


def _record(name: str, fields: _Fields) -> Node:
    namespace, _, short = name.rpartition(".")
    return {"type": "record", "name": short, "namespace": namespace, "fields": _nodes(fields)}


def _nodes(fields: _Fields) -> list[Node]:
    return [
        {"name": name, "type": ["null", kind], "default": None} if optional else {"name": name, "type": kind}
        for name, kind, optional in fields
    ]
