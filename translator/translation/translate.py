"""THE CORE: a message -> its events, or one dead letter. Pure: no clock, no I/O, no other message.

A dialect says what changed; here stands once what holds for all of them: limits, positions, ids, dead letters; keys and
images are in `event_builders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from msgspec import Struct

from cdc_core.envelope import ChangeEvent, Context, Origin, TableSchema
from cdc_core.position import position
from translator.codecs.record import Record
from translator.codecs.registered import UnregisteredSchema
from translator.errors import ConfigError, ErrorCode, MessageError
from translator.message import (
    Change,
    Changes,
    Dialect,
    Learned,
    Limits,
    Message,
    Naming,
    Needs,
    Outcome,
    RowChange,
    Skip,
    TableName,
)
from translator.translation.dead_letter import DeadLetter
from translator.translation.event_builders import OTHER_EVENTS, ROW_EVENTS
from translator.translation.masking import SourceMasks
from translator.translation.refusals import bounded, our_line, without_text
from translator.translation.source_order import NativeOrder

_PLACES = 4096
"""Partitions whose constant texts are kept."""

METADATA_MISSING = (
    "was not learned in time; replay when its metadata message has arrived; the source must read the topic of such"
    " messages too. Where the task publishes none: untyped: translate, and topics (options of the dialect)"
)
"""The reason given for metadata that another message has to bring."""

RUN = 32
"""Messages that are best translated together: more gain nothing, and whatever else the process does waits for them."""


class Events(Struct, frozen=True, gc=False):
    """The message was translated: its events in order, and for each the schema that its `schema_id` names.

    `changes` is what the dialect gave, one for each event.
    """

    events: list[ChangeEvent]
    changes: Sequence[Change]

    @property
    def schemas(self) -> list[TableSchema | None]:
        return [change.schema for change in self.changes]


Result: TypeAlias = Events | DeadLetter | Skip | Learned | Needs


def tables_of(changes: Sequence[Change]) -> frozenset[TableName]:
    """The tables of rows and announcements. Marks of transactions and watermarks carry nothing of a table."""
    return frozenset(
        change.table
        for change in changes
        if change.table is not None and (isinstance(change, RowChange) or change.kind == "schema")
    )


class Encoder(Protocol):
    """The part of a codec that is used here."""

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]: ...


class Translator:
    """Translates the messages of one source.

    Args:
        order: of its rows; None: they are ordered as they arrive.
        masks: of its columns; None where it has none.
    """

    def __init__(
        self,
        source: str,
        dialect: Dialect,
        limits: Limits,
        order: NativeOrder | None = None,
        masks: SourceMasks | None = None,
    ) -> None:
        self.source = source
        self.dialect = dialect
        self.masks = masks
        self._limits = limits
        self._order = order
        self._place_of = lru_cache(maxsize=_PLACES)(self._place)

    @property
    def native_order(self) -> bool:
        """Say whether rows are ordered by the source's own sequence, and not as they arrive."""
        return self._order is not None

    @property
    def shows_messages(self) -> bool:
        """Say whether messages may be written or shown as they came, and reasons that name what stood in them."""
        return self.masks is None or self.masks.keeps_messages

    def translate(self, message: Message) -> Result:
        """The result for one message. An unexpected exception is a dead letter INTERNAL.

        Raises:
            ConfigError: a mask would take rows their key.
        """
        (result,) = self.translate_run((message,))
        return result

    def translate_run(self, messages: Sequence[Message]) -> list[Result]:
        """The results for messages in order; the last is that of the first one that learns or needs metadata.

        One message after the other gives the same results, but takes a quarter longer: what a step works with is at
        hand in the processor for the next message (docs/benchmarks.md).

        Raises:
            ConfigError: a mask would take rows their key.
        """
        outcomes: list[Outcome | DeadLetter] = []
        for message in messages:
            outcome = self._decoded(message)
            outcomes.append(outcome)
            if isinstance(outcome, (Learned, Needs)):
                break
        return [
            self._events(message, outcome.changes) if isinstance(outcome, Changes) else outcome
            for message, outcome in zip(messages, outcomes, strict=False)
        ]

    def _decoded(self, message: Message) -> Outcome | DeadLetter:
        try:
            self._check_size(message)
            return self.dialect.decode(message)
        except MessageError as error:
            return self._dead(message, error)
        except Exception as error:
            return self._internal(message, error)

    def _events(self, message: Message, changes: Sequence[Change]) -> Events | DeadLetter:
        try:
            if not changes:
                raise ValueError("a dialect gave no changes")
            if self.masks is not None:
                changes = [*map(self.masks.apply, changes)]
            events = [self._event(message, n, change) for n, change in enumerate(changes)]
            return Events(events, changes)
        except MessageError as error:
            return self._dead(message, error)
        except ConfigError:
            raise
        except Exception as error:
            return self._internal(message, error)

    def lesson(self, message: Message) -> Learned | None:
        """Return the metadata that a message brings; None for any other, whatever is wrong with it. Never raises."""
        outcome = self._decoded(message)
        return outcome if isinstance(outcome, Learned) else None

    def tables(self, message: Message) -> frozenset[TableName] | None:
        """The tables that a message is about, also one that cannot be translated; None: nobody knows. Never raises."""
        outcome = self._decoded(message)
        if isinstance(outcome, Changes):
            return tables_of(outcome.changes)
        if isinstance(outcome, Learned):
            return tables_of(outcome.announces)
        if not isinstance(self.dialect, Naming):
            return None
        try:
            return frozenset(self.dialect.tables(message))
        except Exception:  # also what is unexpected: the message was refused already, and the refusal says why
            return None

    def announcement(self, message: Message, learned: Learned) -> Events | DeadLetter:
        """The events that a metadata message is at the same time; it must announce something."""
        return self._events(message, learned.announces)

    def encode(self, codec: Encoder, message: Message, events: Events) -> list[Record] | DeadLetter:
        """The records of all events of a message: whole before the first of them is written.

        Raises:
            UnregisteredSchema: the id of a schema is not known yet.
        """
        pairs = zip(events.events, events.changes, strict=True)
        try:
            return [record for event, change in pairs for record in codec.encode(event, change.schema)]
        except UnregisteredSchema:
            raise
        except MessageError as error:
            return self._dead(message, error)
        except Exception as error:
            return self._internal(message, error)

    def _internal(self, message: Message, error: Exception) -> DeadLetter:
        return self.dead(message, self.unexpected(error))

    @staticmethod
    def unexpected(error: Exception) -> MessageError:
        """A foreign exception as INTERNAL. Its text may quote row data; its type and our line do not."""
        return MessageError(ErrorCode.INTERNAL, f"{type(error).__name__} in {our_line(error)}")

    def dead(self, message: Message, error: MessageError) -> DeadLetter:
        """The dead letter of a message that cannot be read for a reason that does not lie in it."""
        return self._letter(message, error, error.reason)

    def missing(self, message: Message, needs: Needs) -> DeadLetter:
        """The dead letter of a message whose metadata did not come in time."""
        if needs.registry_id is None:
            reason = f"metadata {needs.key!r} {METADATA_MISSING}"
        else:
            reason = f"schema {needs.registry_id} of a schema registry is not known; give it with --schemas FILE"
        return self.dead(message, MessageError(ErrorCode.SCHEMA_MISSING, reason))

    def too_large(self, message: Message, topic: str, size: int, allowed: int) -> DeadLetter:
        """The dead letter of a message of which one record does not fit its topic."""
        reason = f"a record of {size} bytes for topic {topic}, which allows {allowed} (max.message.bytes)"
        return self.dead(message, MessageError(ErrorCode.TOO_LARGE, reason))

    def _dead(self, message: Message, error: MessageError) -> DeadLetter:
        return self._letter(message, error, str(error))

    def _letter(self, message: Message, error: MessageError, reason: str) -> DeadLetter:
        place = f"topic {message.topic}, partition {message.partition}, offset {message.offset}"
        text = bounded(reason if self.shows_messages else without_text(error))
        return DeadLetter(error.code, f"{self.dialect.name}: {text} ({place})", not self.shows_messages)

    def _check_size(self, message: Message) -> None:
        size = len(message.value or b"")
        if size > self._limits.value_bytes:
            allowed = f"{self._limits.value_bytes} are allowed (limits.value_bytes)"
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, f"the value has {size} bytes, {allowed}")

    def _event(self, message: Message, n: int, change: Change) -> ChangeEvent:
        if isinstance(change, RowChange):
            at = self._context(message, n, change, change.table.db, change.row, change.rows)
            return ROW_EVENTS[change.op](at, change)
        at = self._context(message, n, change, change.table.db if change.table else change.db, 0, 0)
        return OTHER_EVENTS[change.kind](at, change)

    def _context(self, message: Message, n: int, change: Change, db: str | None, row: int, rows: int) -> Context:
        writer, table, schema = change.writer, change.table, change.schema
        topic, partition, offset = message.topic, message.partition, message.offset
        id_prefix, pos_scope = self._place_of(topic, partition, message.topic_id)
        pos = position(offset, n)
        if self._order is not None and isinstance(change, RowChange):
            pos, pos_scope = self._order.place(message, n, change)
        # By position, in the order of the fields, as `_event` of the envelope does and for the same reason.
        return Context(
            f"{id_prefix}{offset}/{n}",
            self.source,
            self.dialect.name,
            writer.variant,
            writer.variant_basis,
            writer.dbms,
            writer.server,
            writer.task,
            db,
            table.schema if table else None,
            table.table if table else None,
            pos,
            pos_scope,
            change.pos_native,
            change.ts_commit_us,
            change.ts_capture_us,
            message.timestamp_ms * 1000,
            schema.id if schema else None,
            change.tx,
            Origin(topic, partition, offset, row, rows),
        )

    def _place(self, topic: str, partition: int, topic_id: str) -> tuple[str, str]:
        """Return the texts that all events of a partition share: the beginning of `id`, and `pos_scope`."""
        return f"{self.source}/{topic}/{partition}/", f"{topic}:{partition}@{topic_id}"
