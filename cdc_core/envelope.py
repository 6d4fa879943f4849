"""The contract with consumers: ChangeEvent and TableSchema, version 1 (docs/design.md §4.1; docs/envelope.md).

The Avro schema (`envelope.avsc`) is generated from these classes, so there is only one list of fields. New fields are
added at the end with a null default, and existing fields never change. This module imports nothing from the project, so
consumers can copy this file alone.
"""

from __future__ import annotations

import hashlib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

VERSION = 1
NAMESPACE = "cdc.canonical.v1"
SCHEMA_FILE = Path(__file__).with_name("envelope.avsc")

KINDS = ("row", "schema", "tx", "watermark")
OPERATIONS = ("r", "c", "u", "d", "t")
STATES = ("full", "partial", "key", "merged", "none")
KEY_KINDS = ("primary", "unique", "configured", "none")
VARIANT_BASES = ("declared", "certain", "inferred")

INT = Meta(extra={"avro": "int"})
MICROS = Meta(extra={"avro": {"type": "long", "logicalType": "timestamp-micros"}})


# `gc=False` is set here and on every class that is instantiated per message. Objects of these classes never form
# cycles, so the garbage collector does not need to visit them. The visits would take a tenth of the run time
# (docs/benchmarks.md).


class Tx(Struct, frozen=True, gc=False):
    """The source transaction, with what the source reports about it."""

    id: str
    seq: Annotated[int | None, Meta(description="Place of the event in the transaction, from 1.")] = None
    size: Annotated[int | None, Meta(description="Number of changes in the transaction.")] = None
    last: Annotated[bool | None, Meta(description="True for the last change of the transaction.")] = None


class Ddl(Struct, frozen=True):
    """A structure change announced by the source."""

    type: Annotated[str, Meta(description="The source's word, or `metadata`.")]
    sql: Annotated[str | None, Meta(description="Statement text, verbatim.")] = None
    tables: Annotated[list[str] | None, Meta(description="Affected tables when the text was parsed.")] = None
    parsed: Annotated[bool, Meta(description="Whether the text was understood.")] = False


class Origin(Struct, frozen=True, gc=False):
    """The position of the raw bytes."""

    topic: str
    partition: Annotated[int, INT]
    offset: int
    row: Annotated[int, INT, Meta(description="Row of the message, from 0.")]
    rows: Annotated[int, INT, Meta(description="Rows in the message; 0 when the event is not a row.")]


class Issue(Struct, frozen=True, gc=False):
    """A value that cannot be represented exactly. It is left out of the image, and consumers treat the column as
    unavailable.
    """

    col: str
    code: str
    raw: Annotated[str | None, Meta(description="The raw text, bounded.")] = None


class ChangeEvent(Struct, frozen=True, gc=False):
    """One row change, or one announcement, from one source."""

    v: Annotated[int, INT, Meta(description="Envelope version.")]
    id: Annotated[str, Meta(description="source/topic/partition/offset/n: unique and deterministic.")]
    kind: Annotated[str, Meta(description="row, schema, tx or watermark; ignore kinds you do not know.")]
    op: Annotated[str | None, Meta(description="r snapshot row, c, u, d, t truncate; null unless kind is row.")]
    source: Annotated[str, Meta(description="Configured name of the source.")]
    dialect: Annotated[str, Meta(description="qlik, dts_avro, shareplex or canal.")]
    variant: Annotated[str | None, Meta(description="Layout, schema version or writer profile met.")]
    variant_basis: Annotated[str | None, Meta(description="declared, certain or inferred.")]
    dbms: Annotated[str | None, Meta(description="Database product, as the source says.")]
    server: Annotated[str | None, Meta(description="Server, as the source says.")]
    task: Annotated[str | None, Meta(description="Replication task, as the source says.")]
    db: Annotated[str | None, Meta(description="Database, case kept.")]
    schema: Annotated[str | None, Meta(description="Schema or owner, case kept.")]
    table: Annotated[str | None, Meta(description="Table, case kept; set on rows.")]
    pos: Annotated[str, Meta(description="Sortable as text inside one pos_scope: epoch.native.offset.n.")]
    pos_scope: Annotated[str, Meta(description="Where pos compares.")]
    pos_native: Annotated[str | None, Meta(description="The source's own position, verbatim.")]
    ts_commit_us: Annotated[int | None, MICROS, Meta(description="Commit at the source, UTC.")]
    ts_capture_us: Annotated[int | None, MICROS, Meta(description="Written by the capture tool, UTC.")]
    ts_origin_us: Annotated[int, MICROS, Meta(description="Timestamp of the raw Kafka record.")]
    key: Annotated[str | None, Meta(description="JSON object of the key columns in key order.")]
    key_old: Annotated[str | None, Meta(description="The previous key when an update changed it.")]
    key_kind: Annotated[str, Meta(description="primary, unique, configured or none.")]
    before: Annotated[str | None, Meta(description="JSON object of the columns sent.")]
    after: Annotated[str | None, Meta(description="JSON object of the columns sent.")]
    before_state: Annotated[str, Meta(description="full, partial, key, merged or none.")]
    after_state: Annotated[str, Meta(description="full, partial, key, merged or none.")]
    changed: Annotated[list[str] | None, Meta(description="Changed columns when known.")]
    unavailable: Annotated[list[str] | None, Meta(description="Columns the source withheld: never write them.")]
    issues: Annotated[list[Issue] | None, Meta(description="Values without a faithful form.")]
    schema_id: Annotated[str | None, Meta(description="Fingerprint of the table schema, in the schemas topic.")]
    tx: Annotated[Tx | None, Meta(description="The source transaction.")]
    ddl: Annotated[Ddl | None, Meta(description="For kind schema.")]
    origin: Annotated[Origin, Meta(description="Where the raw bytes are.")]
    notes: Annotated[list[str] | None, Meta(description="Decisions taken by the translator.")]
    ext: Annotated[dict[str, str] | None, Meta(description="Opt-in leftovers of the source.")]

    @classmethod
    def snapshot(cls, at: Context, key: Key, after: ImageText, detail: Detail) -> ChangeEvent:
        """A row from a full load."""
        return _event("row", "r", at, key, None, after, None, detail)

    @classmethod
    def insert(cls, at: Context, key: Key, after: ImageText, detail: Detail) -> ChangeEvent:
        """A new row."""
        return _event("row", "c", at, key, None, after, None, detail)

    @classmethod
    def update(cls, at: Context, key: Key, before: ImageText | None, after: ImageText, detail: Detail) -> ChangeEvent:
        """A changed row. `before` is None if the source did not send a before image, and `key.old` is set if the key
        changed.
        """
        return _event("row", "u", at, key, before, after, None, detail)

    @classmethod
    def delete(cls, at: Context, key: Key, before: ImageText | None, detail: Detail) -> ChangeEvent:
        """A deleted row, which has no after image."""
        return _event("row", "d", at, key, before, None, None, detail)

    @classmethod
    def truncate(cls, at: Context, detail: Detail) -> ChangeEvent:
        """A truncate: the table is empty after this event."""
        return _event("row", "t", at, NO_KEY, None, None, None, detail)

    @classmethod
    def schema_change(cls, at: Context, ddl: Ddl, detail: Detail, after: ImageText | None = None) -> ChangeEvent:
        """DDL or new metadata, announced by the source. `after` contains the values that existing rows have in new
        columns.
        """
        return _event("schema", None, at, NO_KEY, None, after, ddl, detail)

    @classmethod
    def transaction(cls, at: Context, detail: Detail) -> ChangeEvent:
        """The begin or end of a transaction, announced by the source."""
        return _event("tx", None, at, NO_KEY, None, None, None, detail)

    @classmethod
    def watermark(cls, at: Context, detail: Detail) -> ChangeEvent:
        """A heartbeat: the source is alive and has sent everything up to this point."""
        return _event("watermark", None, at, NO_KEY, None, None, None, detail)


class Context(Struct, frozen=True, gc=False):
    """The fields that every event has, regardless of its operation: identity, writer, table, position, times,
    origin."""

    id: str
    source: str
    dialect: str
    variant: str | None
    variant_basis: str | None
    dbms: str | None
    server: str | None
    task: str | None
    db: str | None
    schema: str | None
    table: str | None
    pos: str
    pos_scope: str
    pos_native: str | None
    ts_commit_us: int | None
    ts_capture_us: int | None
    ts_origin_us: int
    schema_id: str | None
    tx: Tx | None
    origin: Origin


class Key(Struct, frozen=True, gc=False):
    """A row's key as JSON text. If no key is known, `text` is None."""

    text: str | None
    kind: str
    old: str | None = None


class ImageText(Struct, frozen=True, gc=False):
    """A row image as JSON text, with its state (one of STATES, never `none`)."""

    text: str
    state: str


class Detail(Struct, frozen=True, gc=False):
    """Optional fields for any change. An empty list is written as null. However, if `changed` is null, the changed
    columns are unknown.
    """

    changed: list[str] | None = None
    unavailable: list[str] | None = None
    issues: list[Issue] | None = None
    notes: list[str] | None = None
    ext: dict[str, str] | None = None


NO_KEY = Key(None, "none")


def _event(
    kind: str,
    op: str | None,
    at: Context,
    key: Key,
    before: ImageText | None,
    after: ImageText | None,
    ddl: Ddl | None,
    detail: Detail,
) -> ChangeEvent:
    # The arguments are positional, in field order, because this call runs once per event, and keyword arguments take
    # four times as long.
    return ChangeEvent(
        VERSION,
        at.id,
        kind,
        op,
        at.source,
        at.dialect,
        at.variant,
        at.variant_basis,
        at.dbms,
        at.server,
        at.task,
        at.db,
        at.schema,
        at.table,
        at.pos,
        at.pos_scope,
        at.pos_native,
        at.ts_commit_us,
        at.ts_capture_us,
        at.ts_origin_us,
        key.text,
        key.old,
        key.kind,
        before.text if before else None,
        after.text if after else None,
        before.state if before else "none",
        after.state if after else "none",
        detail.changed,
        detail.unavailable or None,
        detail.issues or None,
        at.schema_id,
        at.tx,
        ddl,
        at.origin,
        detail.notes or None,
        detail.ext or None,
    )


class Column(Struct, frozen=True):
    """A TableSchema column. `key` is its position in the key, from 1."""

    name: str
    type: str
    nullable: bool | None = None
    key: int | None = None
    native: str | None = None
    length: int | None = None
    charset: str | None = None


class TableSchema(Struct, frozen=True, dict=True):
    """A table's complete column list at one point in time, as declared by the source or the configuration."""

    source: str
    db: str | None
    schema: str | None
    table: str
    columns: tuple[Column, ...]
    key_kind: str = "none"
    id: str = ""

    @classmethod
    def of(
        cls, source: str, db: str | None, schema: str | None, table: str, columns: Sequence[Column], key_kind: str
    ) -> TableSchema:
        """A schema with its fingerprint."""
        return cls(source, db, schema, table, tuple(columns), key_kind, fingerprint(columns, key_kind))

    @cached_property
    def column_names(self) -> frozenset[str]:
        """All column names."""
        return frozenset(column.name for column in self.columns)

    @cached_property
    def column_types(self) -> Mapping[str, str]:
        """Each column's canonical type."""
        return {column.name: column.type for column in self.columns}

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key column names, in key order."""
        keyed = [(column.key, column.name) for column in self.columns if column.key is not None]
        return tuple(name for _, name in sorted(keyed))

    @cached_property
    def topic_key(self) -> str:
        """The record key in the schemas topic: source/db/schema/table/schema_id. Absent levels are left empty.

        In names, `/` and `%` are percent-encoded, so that two tables never share a key.
        """
        parts = (self.source, self.db or "", self.schema or "", self.table, self.id)
        return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def fingerprint(columns: Sequence[Column], key_kind: str) -> str:
    """Return 16 hex digits that identify a column list: the first 8 bytes of the SHA-256 hash of the list as JSON. The
    fingerprint is stable across releases.
    """
    parts = [[c.name, c.type, c.nullable, c.key, c.native, c.length, c.charset] for c in columns]
    text = json.dumps([key_kind, parts], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


# -- the Avro schema, derived from the classes above

_SCALARS: Mapping[type, str] = {str: "string", int: "long", bool: "boolean"}


def avro_schema(record: type[Struct] = ChangeEvent, *, logical: bool = True) -> dict[str, Any]:
    """Return the Avro schema for a record class. `logical=False` omits logical types, so times are plain integers."""
    hints = typing.get_type_hints(record, include_extras=True)
    fields = []
    for field in msgspec.structs.fields(record):
        entry: dict[str, Any] = {"name": field.name, "type": _avro_type(hints[field.name], logical)}
        doc = _meta(hints[field.name], "description")
        if doc:
            entry["doc"] = doc
        if isinstance(entry["type"], list):
            entry["default"] = None
        fields.append(entry)
    return {"type": "record", "name": record.__name__, "namespace": NAMESPACE, "fields": fields}


def _meta(hint: Any, name: str) -> Any:
    for item in getattr(hint, "__metadata__", ()):
        value = getattr(item, name, None)
        if value:
            return value
    return None


def _avro_type(hint: Any, logical: bool) -> Any:
    extra = _meta(hint, "extra") or {}
    plain = typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    if isinstance(plain, types.UnionType):
        inner = next(arm for arm in plain.__args__ if arm is not types.NoneType)
        return ["null", _named(inner, extra, logical)]
    return _named(plain, extra, logical)


def _named(plain: Any, extra: Mapping[str, Any], logical: bool) -> Any:
    if "avro" in extra:
        declared = extra["avro"]
        return declared["type"] if isinstance(declared, dict) and not logical else declared
    origin = typing.get_origin(plain)
    if origin is list:
        return {"type": "array", "items": _named(typing.get_args(plain)[0], {}, logical)}
    if origin is dict:
        return {"type": "map", "values": _named(typing.get_args(plain)[1], {}, logical)}
    if isinstance(plain, type) and issubclass(plain, Struct):
        return avro_schema(plain, logical=logical)
    return _SCALARS[plain]


def schema_text() -> str:
    """Return the content for `envelope.avsc`, which `python -m cdc_core.envelope` writes."""
    return json.dumps(avro_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text())
