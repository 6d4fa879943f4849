"""Determine the final result for a message: the records to write, or the reason why there are none.

The service, `audit`, `explain`, `retranslate`, `dlq replay` and `translator translate` all use this single path. If a
check used another path, it would test nothing but a copy of the service. This module neither writes nor waits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

import msgspec
from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator._native.layout import TakenMessage
from translator._native.taken import totals
from translator.codecs.record import ID_HEADER, Record, record_size
from translator.codecs.registered import UnregisteredSchema
from translator.errors import MessageError
from translator.message import Learned, Message, Needs, Skip, check_name
from translator.resolution.routes import Levels, Routes
from translator.state.metadata_topic import document_record
from translator.state.state_record import state_record
from translator.translation.dead_letter import DeadLetter
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.native_path import NativePath
from translator.translation.translate import Encoder, Events, Result, Translator

NEW_SCHEMA = "new schema"
"""The reason why the first messages with a schema take the plain path."""

NATIVE_RUN = 256
"""The number of messages that the native path translates together. In runs of 32, a message costs a tenth more."""

NATIVE_RUN_BYTES = 256 * 1024
"""A run ends with the message whose value exceeds this total size. While the producer's queue is full, each partition
keeps the records of one run, which can be 20 times as large as their messages.
"""

UNBOUNDED = 2**63 - 1
"""Used as `max_bytes` if the output is not a topic."""


class OutputTopic(Struct, frozen=True):
    """A topic that is written."""

    topic: str
    partitions: int
    max_bytes: int


class EventOutput(Struct, frozen=True):
    """An event topic and its format: the canonical topic or a projection."""

    codec: Encoder
    to: OutputTopic
    """If routes are set, the output has several topics. `topic` is then the template, and `partitions` is not used."""
    routes: Routes | None = None


class Outputs(Struct, frozen=True):
    """All topics for events and metadata. The canonical topic comes first in `events`."""

    events: tuple[EventOutput, ...]
    schemas: OutputTopic
    metadata: OutputTopic


Encoded: TypeAlias = Sequence[list[Record] | DeadLetter]
"""A message's records for each output in `Outputs.events`, or the dead letter that explains why the message has no
records.
"""

_NO_SCHEMAS: Mapping[str, Record] = {}


class Translation(Struct, frozen=True, gc=False):
    """The result for one message: its records for every output, or the reason why the message has no records."""

    read: Events | DeadLetter | Skip | Learned
    """The dialect's result, which guards inspect."""
    outcome: Events | DeadLetter | Skip | Learned
    """The outcome to count in metrics.

    It may differ from the result, because a translated message may be too large for a topic.
    """
    events: Events | None = None
    """The message's events, or the events that its metadata announces."""
    outputs: Encoded = ()
    schemas: Mapping[str, Record] = _NO_SCHEMAS
    """Schema records by key. The events refer to these schemas, and according to the catalog, they have not been
    published yet.
    """
    metadata: Record | None = None
    """The record with which other processes learn the metadata in the message, unless a newer document is known."""

    @property
    def canonical(self) -> list[Record]:
        """The records for the canonical topic."""
        records = self.outputs[0] if self.outputs else []
        return [] if isinstance(records, DeadLetter) else records

    @property
    def by_event(self) -> Mapping[int, Record]:
        """The records for the canonical topic, by the event number at the end of the event id.

        Empty for tables that are not written to that topic.
        """
        return {event_number(record): record for record in self.canonical}

    @property
    def left_out(self) -> frozenset[int]:
        """The numbers of events that are not written to the canonical topic, because it excludes their table."""
        if self.events is None or not self.outputs or isinstance(self.outputs[0], DeadLetter):
            return frozenset()
        return frozenset(range(len(self.events.events))) - self.by_event.keys()

    def by_table(self, output: int) -> Iterator[tuple[Levels, Sequence[Record]]]:
        """Yield the records for the output with this number, each with its table."""
        records = self.outputs[output] if self.outputs else []
        events = self.events.events if self.events is not None else ()
        if isinstance(records, DeadLetter):
            return
        of = [(event.source, event.db, event.schema, event.table) for event in events]
        if len(of) == 1:
            yield of[0], records
            return
        for record in records:
            yield of[event_number(record)], [record]

    @property
    def is_settled(self) -> bool:
        """Return whether every output accepts all events in the result, and no schema has to be published before
        them.
        """
        settled = self.events is not None and self.events is self.outcome and not self.schemas
        return settled and all(type(records) is list for records in self.outputs)


Resolved: TypeAlias = Translation | TakenMessage | Learned | Needs
"""The result for one message in a run of messages."""

TAKEN = "taken"
"""The native path's outcome for a message that it translated. For any other message, the reason why the native path did
not translate it.
"""


class Resolver:
    """Resolves messages for one set of outputs. The catalog learns from metadata messages.

    Args:
        native: the native path to the canonical topic, for each source that has a native path.
    """

    def __init__(
        self, outputs: Outputs, catalog: MetadataCatalog, native: Mapping[str, NativePath] | None = None
    ) -> None:
        self._outputs = outputs
        self._catalog = catalog
        self._native = native or {}

    def resolve_run(
        self, translator: Translator, messages: Sequence[Message], outcomes: Counter[str]
    ) -> Sequence[Resolved]:
        """Resolve the first of a partition's messages in order. Returns at least one result. Only the last message may
        contain or need metadata. If it does, pass it to `resolve`.

        Metadata is not learned until the messages before it have been written: see `Translator.translate_run`.

        Args:
            outcomes: counts what the native path did, for sources that have one.
        """
        path = self._native.get(translator.source)
        if path is None:
            return self._resolve_plainly(translator, messages[: translator.run])
        messages = _native_run(messages)
        found, known = path.take(messages), self._catalog.is_announced
        operations = totals(found)
        # The plain path publishes schemas.
        new = {key for operation, *_ in operations if (key := operation.schema_key) is not None and not known(key)}
        if not new and len(found) == sum(count for _, count, *_ in operations):
            outcomes[TAKEN] += len(found)
            return found  # type: ignore[return-value]  # none of them is a reason
        found = [
            taken if isinstance(taken, str) or taken.operation.schema_key not in new else NEW_SCHEMA for taken in found
        ]
        left = [message for message, taken in zip(messages, found, strict=True) if isinstance(taken, str)]
        plain = iter(self._resolve_plainly(translator, left))
        run: list[Resolved] = []
        for taken in found:
            if not isinstance(taken, str):
                outcomes[TAKEN] += 1
                run.append(taken)
                continue
            outcomes[taken] += 1
            run.append(next(plain))
            if isinstance(run[-1], (Learned, Needs)):
                break
        return run

    def _resolve_plainly(
        self, translator: Translator, messages: Sequence[Message]
    ) -> list[Translation | Learned | Needs]:
        run: list[Translation | Learned | Needs] = []
        for message, result in zip(messages, translator.translate_run(messages), strict=False):
            run.append(result if isinstance(result, (Learned, Needs)) else self._resolved(translator, message, result))
            if isinstance(run[-1], Needs):
                break
        return run

    def resolve(self, translator: Translator, message: Message, result: Result | None = None) -> Translation | Needs:
        """Resolve one message.

        Args:
            result: the translation, if it is already known.
        """
        if result is None:
            result = translator.translate(message)
        if isinstance(result, Needs):
            return result
        if isinstance(result, Learned):
            return self.learn(translator, message, result)
        return self._resolved(translator, message, result)

    def _resolved(
        self, translator: Translator, message: Message, result: Events | DeadLetter | Skip
    ) -> Translation | Needs:
        if not isinstance(result, Events):
            return Translation(result, result)
        encoded = self._encode(translator, message, result)
        if isinstance(encoded, Needs):
            return encoded
        schemas = self._schemas(translator, message, result, encoded)
        if isinstance(schemas, DeadLetter):
            return Translation(result, schemas)
        return Translation(result, result, result, encoded, schemas)

    def learn(self, translator: Translator, message: Message, learned: Learned) -> Translation | Needs:
        """Resolve a metadata message and learn it.

        If the metadata cannot be written or announced to other processes, it is not learned here either. The message
        then becomes a dead letter.
        """
        record = document_record(translator.source, learned.key, learned.document)
        if too_large := self._too_large(translator, message, [record], self._outputs.metadata):
            return Translation(learned, too_large)
        announced = translator.announcement(message, learned) if learned.announces else None
        if isinstance(announced, DeadLetter):
            return Translation(learned, announced)
        encoded: Encoded = ()
        schemas: Mapping[str, Record] | DeadLetter = _NO_SCHEMAS
        if announced is not None:
            found = self._encode(translator, message, announced)
            if isinstance(found, Needs):
                return found
            encoded = found
            schemas = self._schemas(translator, message, announced, encoded)
        if isinstance(schemas, DeadLetter):
            return Translation(learned, schemas)
        try:
            self._catalog.check_document(
                translator.source, learned.key, learned.document, translator.limits.metadata_bytes
            )
            newest = self._catalog.register(translator, learned.key, learned.document)
        except MessageError as error:
            return Translation(learned, translator.dead(message, error))
        return Translation(learned, learned, announced, encoded, schemas, record if newest else None)

    def _encode(self, translator: Translator, message: Message, events: Events) -> Encoded | Needs:
        """Return all records of all events by output, before the first one is written. If metadata is missing without
        which the events cannot be encoded, return that metadata.
        """
        try:
            return [self._records(translator, message, events, output) for output in self._outputs.events]
        except UnregisteredSchema as wanted:
            return Needs(wanted.subject, schema_text=wanted.text)

    def _records(
        self, translator: Translator, message: Message, events: Events, output: EventOutput
    ) -> list[Record] | DeadLetter:
        records = translator.encode(output.codec, message, events)
        if isinstance(records, DeadLetter):
            return records
        return self._too_large(translator, message, records, output.to) or records

    def _schemas(
        self, translator: Translator, message: Message, events: Events, encoded: Encoded
    ) -> Mapping[str, Record] | DeadLetter:
        """Return the schemas to publish before the events, or the reason why nothing from the message can be written.

        If the canonical topic cannot accept one of the message's records, the message is written to no output. If only
        a projection cannot accept a record, the message is missing only from this projection.
        """
        canonical = encoded[0]
        if isinstance(canonical, DeadLetter):
            return canonical
        known = self._catalog.is_announced
        new = [schema for schema in events.schemas if schema is not None and not known(schema.topic_key)]
        if not new:
            return _NO_SCHEMAS
        schemas = {schema.topic_key: schema_record(schema) for schema in new}
        too_large = self._too_large(translator, message, schemas.values(), self._outputs.schemas)
        if too_large is not None:
            return too_large
        try:
            for column in (column for schema in new for column in schema.columns):
                check_name("column", column.name)
            self._catalog.accept_schemas(translator.source, schemas.keys(), translator.limits.schemas)
        except MessageError as error:
            return translator.dead(message, error)
        return schemas

    @staticmethod
    def _too_large(
        translator: Translator, message: Message, records: Iterable[Record], to: OutputTopic
    ) -> DeadLetter | None:
        """Return the dead letter for a message with a record that does not fit its topic."""
        largest = max(map(record_size, records), default=0)
        return translator.too_large(message, to.topic, largest, to.max_bytes) if largest > to.max_bytes else None


def _native_run(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the first messages, at least one, which the native path translates together."""
    run = messages[:NATIVE_RUN]
    sizes = list(accumulate(len(message.value or b"") for message in run))
    return run[: bisect_right(sizes, NATIVE_RUN_BYTES) + 1]


def event_number(record: Record) -> int:
    """Return the number of a record's event within its message."""
    identity = next(value for name, value in record.headers if name == ID_HEADER)
    # The number can be followed by a suffix for one half of a key change.
    return int((identity or b"").split(b"/")[4])  # type: ignore[arg-type]  # the codecs give bytes


def schema_record(schema: TableSchema) -> Record:
    """Return a schema as stored in the schemas topic."""
    return state_record(schema.topic_key, msgspec.json.encode(schema))
