"""The dialect, which determines what kind of record a Qlik Replicate topic contains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from translator._native.layout import QlikReading
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._masked_values import MaskedValues
from translator.dialects._topic_patterns import Topics
from translator.dialects.qlik.avro import FRAME_BYTES, Envelope, open_envelope, registry_id
from translator.dialects.qlik.document import encode_document, read_document
from translator.dialects.qlik.envelope_fields import (
    CHANGE_SEQUENCE,
    OPERATIONS,
    READ,
    HeaderRules,
    Headers,
    read_headers,
)
from translator.dialects.qlik.frame import (
    CONFLUENT_AVRO,
    DATA,
    ENVELOPED_AVRO,
    JSON,
    METADATA,
    REGISTRY,
    Frame,
    framing,
    open_json,
)
from translator.dialects.qlik.keys import KeyRecord, is_framed, is_object, named_key, row_of_text
from translator.dialects.qlik.masked_copy import MaskedCopies
from translator.dialects.qlik.metadata import Metadata, announcement, compile_document
from translator.dialects.qlik.native_rows import DEPTH, Described, QlikNativeRows, words_of
from translator.dialects.qlik.row_schema import AvroReading, NamespaceParts, RowSchema, WriterSchema, WriterSchemas
from translator.dialects.qlik.rows import Sections, read_change, read_delete_by_key, read_sections
from translator.dialects.qlik.sections import MessageFormat, Splitter
from translator.dialects.qlik.tables import Table, UntypedTables
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Changes, Learned, Message, Needs, Outcome, Setup, Skip, TableName

T = TypeVar("T")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options for a Qlik source (docs/dialects/qlik.md)."""

    topics: Topics = None
    """The table for each topic, for messages without metadata."""
    untyped: Literal["wait", "translate"] = "wait"
    """The policy for a message that refers to metadata: wait for the metadata, or translate the message without types.
    In the second case, metadata is not used even if it is known. An event must not depend on what happened to be
    learned before it (docs/design.md §1). Avro messages that cannot be read without the metadata always wait.
    """
    message_format: MessageFormat | None = None
    """The sections in a task that does not use Replicate's defaults. None: detect the sections."""
    avro_masks: Literal["big", "little"] = "big"
    """The first byte of a mask in Avro. It is either the most significant one, as in the hex text, or the least
    significant one (§5: unproven).
    """
    numeric_timestamp: Literal["note", "reject", "micros"] = "note"
    """The policy for a numeric timestamp: leave it out with a note, reject it, or read it as microseconds since 1970.
    """
    read_as_refresh: bool = False
    """True if the operation READ is treated as REFRESH. No known producer writes READ (§4)."""
    carry: tuple[Literal["streamPosition", "externalSchemaId"], ...] = ()
    """Headers to include in `ext`."""
    message_key: Literal["unknown", "primary_key", "table"] = "unknown"
    """The content of the Kafka key that the task writes. It may be the value of the key column, which is used for a
    DELETE without a row. It may also be `SCHEMA+TABLE`, which identifies the table if neither metadata nor `topics`
    does.
    """
    control_tables: Literal["pass", "skip"] = "pass"
    """The policy for rows from Replicate's own tables, `attrep_…`: translate them like other rows, or skip and count
    them.
    """


class Qlik:
    """Reads Qlik Replicate on Kafka. Data messages are converted to row changes, and metadata messages are learned."""

    name = "qlik"
    learns = True
    native_position = CHANGE_SEQUENCE

    def __init__(self, setup: Setup, given: Options) -> None:
        self._setup = setup
        self._wait = given.untyped == "wait"
        self._splitter = None if given.message_format is None else Splitter(given.message_format)
        self._reading = AvroReading(self._splitter, given.avro_masks)
        self._rules = HeaderRules(
            {**OPERATIONS, **(READ if given.read_as_refresh else {})}, given.numeric_timestamp, given.carry
        )
        self._text_key_is_primary = given.message_key == "primary_key"
        self._skips_control_tables = given.control_tables == "skip"
        self._key_is_table = given.message_key == "table"
        self._untyped = UntypedTables(setup, given.topics, key_is_table=self._key_is_table)
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._embedded = WriterSchemas(setup.limits, self._reading)
        self._framings: Mapping[str, Callable[[Message, bytes], Outcome]] = {
            JSON: self._decode_json,
            ENVELOPED_AVRO: self._decode_envelope,
            CONFLUENT_AVRO: self._decode_confluent,
        }

    def decode(self, message: Message) -> Outcome:
        """Return one record's outcome.

        Raises:
            MessageError: the record becomes a dead letter.
        """
        if not message.value:
            return Skip("tombstone")
        return self._framings[framing(message.value)](message, message.value)

    def hints(self, *, described: bool) -> list[str]:
        """Return a hint if the tables of messages without metadata are unknown."""
        if described or self._untyped.can_name:
            return []
        return [
            "neither metadata_topics nor options.topics is set. Unless metadata messages arrive on its topics, "
            "messages without a table name become dead letters, and rows have no types"
        ]

    def native_rows(self) -> QlikNativeRows | None:
        """Return what the native path needs. Return None if sections have custom names, or if the limits leave no
        room.
        """
        limits = self._setup.limits
        if self._splitter is not None or limits.json_depth < DEPTH:
            return None
        words, carried = words_of(self._rules.operations), self._rules.carried
        reading = QlikReading(words, self._wait, self._key_is_table, carried, limits.value_bytes, limits.columns)
        lookup, reversed_masks = self._setup.lookup, self._reading.masks == "little"
        return QlikNativeRows(
            reading, lookup, self._described_table, self._row_schema_of, reversed_masks=reversed_masks
        )

    def _row_schema_of(self, schema_id: str) -> RowSchema:
        if schema_id.startswith(REGISTRY):
            return self._learned(schema_id, WriterSchema).row
        return self._learned(schema_id, Metadata).row_schema

    def _described_table(self, described: Described) -> Table | None:
        """Find a message's table as `decode` does. Returns None if the message is not a row change that the native path
        supports.
        """
        named = {"schema": described.schema, "table": described.table}
        frame = Frame(described.variant, DATA, None, {"headers": named}, "$")
        message = Message(described.topic, 0, 0, 0, described.key, b"")
        if described.variant == CONFLUENT_AVRO:
            schema, key = self._row_schema_of(described.schema_id), described.key_schema_id
            key_record = KeyRecord(self._learned(key, WriterSchema)) if key else None
            table = self._registered_table(schema, self._untyped.find_avro(message, frame, schema), key_record)
        elif described.schema_id:
            metadata = self._learned(described.schema_id, Metadata)
            table = metadata.avro_table if described.variant == ENVELOPED_AVRO else metadata.table
        else:
            table = self._untyped.find(message, frame)
        return None if self._is_skipped(table) else table

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the table for a JSON data message: from its metadata, or else from its topic, its Kafka key or its
        content.

        Raises:
            MessageError: the table is unknown, or the message is Avro, which is not examined here.
        """
        frame = open_json(message.value or b"", self._setup.limits, self._splitter)
        if frame.type == METADATA:
            raise MessageError(ErrorCode.TABLE_UNKNOWN, "metadata can be for any table")
        if frame.schema_id is not None and self._wait:
            metadata = self._found(frame.schema_id, Metadata)
            if metadata is None:
                raise MessageError(
                    ErrorCode.SCHEMA_MISSING, "the table is defined by metadata that has not arrived yet"
                )
            return [metadata.table.name]
        return [self._untyped.find(message, frame).name]

    def masked_copy(self, message: Message, masked: MaskedValues) -> Message:
        """Return a copy with different row values, in the value and in the key.

        Raises:
            Unmaskable: the message cannot be read, or its metadata or schema is unknown.
        """
        return MaskedCopies(self._splitter, self._setup.limits, self._embedded, self._found, masked).copy(message)

    def learn(self, key: str, document: bytes) -> Metadata | WriterSchema:
        """Return the metadata in a document that `decode` produced, or a registry schema."""
        if key.startswith(REGISTRY):
            return WriterSchema(document, self._setup.limits, self._reading)
        return self._compile(document)

    def _found(self, key: str, expected: type[T]) -> T | None:
        found = self._setup.lookup(key)
        if found is not None and not isinstance(found, expected):
            raise TypeError(f"the lookup returned {type(found).__name__}, which learn() does not create")
        return found

    def _learned(self, key: str, expected: type[T]) -> T:
        found = self._found(key, expected)
        if found is None:
            raise MessageError(ErrorCode.SCHEMA_MISSING, f"{quote(key)} has not arrived")
        return found

    # -- JSON

    def _decode_json(self, message: Message, value: bytes) -> Outcome:
        frame = open_json(value, self._setup.limits, self._splitter)
        if frame.type == METADATA:
            return self._decode_metadata(frame)
        # Everything that needs no metadata is read first, so that an invalid message does not wait.
        headers, sections = self._read(frame, message)
        if frame.schema_id is not None and self._wait:
            metadata = self._found(frame.schema_id, Metadata)
            if metadata is None:
                return Needs(frame.schema_id)
            return self._change(message, frame, headers, sections, metadata.table)
        return self._change(message, frame, headers, sections, self._untyped.find(message, frame))

    def _decode_metadata(self, frame: Frame) -> Outcome:
        document = encode_document(read_document(frame, self._setup.limits))
        metadata = self._compile(document)
        return Learned(metadata.document.schema_id, document, announcement(metadata, frame.variant))

    def _compile(self, document: bytes) -> Metadata:
        return compile_document(document, self._setup.source, self._declared, self._setup.limits, self._reading)

    # -- Avro in the Replicate envelope

    def _decode_envelope(self, message: Message, value: bytes) -> Outcome:
        envelope = open_envelope(value, self._setup.limits)
        if envelope.type == METADATA:
            return self._decode_metadata(self._open_metadata(envelope))
        if envelope.schema_text is None and envelope.schema_id is None:
            reason = "the schema of the message is unknown: it has neither messageSchemaId nor messageSchema"
            raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.messageSchemaId")
        schema = None if envelope.schema_text is None else self._embedded.of(envelope.schema_text).row
        metadata = None
        if envelope.schema_id is not None and (self._wait or schema is None):
            metadata = self._found(envelope.schema_id, Metadata)
        if schema is not None:
            row_schema = schema
        elif metadata is not None:
            row_schema = metadata.row_schema
        else:
            return Needs(envelope.schema_id or "")
        body = row_schema.read(envelope.message, "$.message")
        frame = Frame(ENVELOPED_AVRO, DATA, envelope.schema_id, body, "$.message", row_schema.basis)
        headers, sections = self._read(frame, message)
        if metadata is not None:
            table = metadata.avro_table if schema is None else metadata.avro_table_by(schema)
        elif envelope.schema_id is not None and self._wait:
            return Needs(envelope.schema_id)
        else:
            table = self._untyped.of_schema(row_schema, self._untyped.find_avro(message, frame, row_schema), ())
        return self._change(message, frame, headers, sections, table)

    def _open_metadata(self, envelope: Envelope) -> Frame:
        if envelope.schema_text is None:
            raise MessageError(
                ErrorCode.MISSING_FIELD, "the metadata message has no messageSchema", path="$.messageSchema"
            )
        # Not cached, because each metadata message has a schema of its own, with a record for every column.
        schema = WriterSchema(envelope.schema_text, self._setup.limits, self._reading)
        body = schema.record.read(envelope.message, "$.message")
        return Frame(ENVELOPED_AVRO, METADATA, envelope.schema_id, body, "$.message")

    # -- Avro in Confluent's frame

    def _decode_confluent(self, message: Message, value: bytes) -> Outcome:
        number = registry_id(value)
        schema = self._found(f"{REGISTRY}{number}", WriterSchema)
        if schema is None:
            return Needs(f"{REGISTRY}{number}", number)
        row_schema = _by_registry(number, lambda: schema.row)
        frame = Frame(CONFLUENT_AVRO, DATA, None, row_schema.read(value[FRAME_BYTES:], "$"), "$", row_schema.basis)
        headers, sections = self._read(frame, message)
        named = self._untyped.find_avro(message, frame, row_schema)
        key_record = None
        if is_framed(message.key) and (not sections.row or not self._untyped.declared_key(named.table)):
            key_number = registry_id(message.key or b"")
            key_schema = self._found(f"{REGISTRY}{key_number}", WriterSchema)
            if key_schema is None:
                return Needs(f"{REGISTRY}{key_number}", key_number)
            key_record = _by_registry(key_number, lambda: KeyRecord(key_schema), "of the Kafka key")
        table = self._registered_table(row_schema, named, key_record)
        return self._change(message, frame, headers, sections, table, key_record)

    def _registered_table(self, schema: RowSchema, named: NamespaceParts, key_record: KeyRecord | None) -> Table:
        return self._untyped.of_schema(schema, named, tuple(key_record.columns) if key_record else ())

    # -- rows in all layouts

    def _read(self, frame: Frame, message: Message) -> tuple[Headers, Sections]:
        headers = read_headers(frame.body, frame.path, self._rules)
        return headers, read_sections(frame, headers.op, self._setup.limits, has_key=self._has_row(frame, message.key))

    def _has_row(self, frame: Frame, key: bytes | None) -> bool:
        """Return whether a Kafka key can identify a row."""
        if frame.variant == CONFLUENT_AVRO and is_framed(key):
            return True
        return is_object(key) or (bool(key) and self._text_key_is_primary)

    def _change(
        self,
        message: Message,
        frame: Frame,
        headers: Headers,
        sections: Sections,
        table: Table,
        key_record: KeyRecord | None = None,
    ) -> Outcome:
        limits = self._setup.limits
        if self._is_skipped(table):
            return Skip("control_table")
        if sections.row:
            key_columns = None if table.key_columns else named_key(message.key, sections.row, limits)
            known = table if key_columns is None else table.with_key(key_columns)
            return Changes([read_change(frame, headers, sections, known, limits)])
        key = message.key or b""
        if key_record is not None:
            row = key_record.row(key, table)
        else:
            row = row_of_text(key, table, limits, is_primary_key=self._text_key_is_primary)
            table = table if table.key_columns else table.with_key(row.key_columns)
        return Changes([read_delete_by_key(frame, headers, row, table, limits)])

    def _is_skipped(self, table: Table) -> bool:
        return self._skips_control_tables and table.name.table.lower().startswith(_CONTROL_TABLE)


_CONTROL_TABLE = "attrep_"


def _by_registry(number: int, make: Callable[[], T], of: str = "of the registry") -> T:
    """Compile a registry schema. An error includes the schema's id."""
    try:
        return make()
    except MessageError as error:
        raise MessageError(error.code, f"schema {number} {of}: {error.reason}", path=error.path) from None
