"""Turn a message into its events or into one dead letter. This is the core of the translator. It is pure: it uses no
clock, no I/O and no other message.

A dialect determines what changed. This module contains what all dialects share: limits, positions, ids and dead
letters. Keys and images are in `event_builders`.
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
from translator.dialects._contained import Contained
from translator.dialects._plugin_calls import line_of
from translator.errors import ErrorCode, MessageError
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
"""Maximum number of partitions whose constant strings are cached."""

METADATA_MISSING = (
    "was not learned in time. Replay this message once its metadata message has arrived; the source must also read "
    "the topic with the metadata messages. If the task does not publish any, see the dialect's options untyped: "
    "translate and topics"
)
"""The reason given if the metadata has to come from another message."""

RUN = 32
"""Number of messages to translate together on the plain path. A larger number would not be faster, but it would block
the process for longer. On the native path, runs are longer (`resolve.NATIVE_RUN`), because they are faster.
"""


class Events(Struct, frozen=True, gc=False):
    """The result for a message that was translated. It contains the events in order, each with the schema that its
    `schema_id` refers to.

    `changes` is the dialect's result, with one change per event.
    """

    events: list[ChangeEvent]
    changes: Sequence[Change]

    @property
    def schemas(self) -> list[TableSchema | None]:
        return [change.schema for change in self.changes]


Result: TypeAlias = Events | DeadLetter | Skip | Learned | Needs


def tables_of(changes: Sequence[Change]) -> frozenset[TableName]:
    """Return the tables in rows and announcements. Transaction markers and watermarks belong to no table."""
    return frozenset(
        change.table
        for change in changes
        if change.table is not None and (isinstance(change, RowChange) or change.kind == "schema")
    )


class Encoder(Protocol):
    """The codec method that this module calls."""

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Record]: ...


class Translator:
    """Translates messages from one source.

    Args:
        order: how to order the source's rows, or None for arrival order.
        masks: the source's column masks, or None.
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
        self.is_plugin = isinstance(dialect, Contained)
        self.masks = masks
        self.limits = limits
        self.order = order
        self._place_of = lru_cache(maxsize=_PLACES)(self._place)

    @property
    def run(self) -> int:
        """The number of messages to translate together. The messages of a plug-in are translated one by one, so the
        process can do other work after a slow message.
        """
        return 1 if self.is_plugin else RUN

    @property
    def shows_messages(self) -> bool:
        """Return whether original messages, and reasons that quote them, may be written or shown."""
        return self.masks is None or self.masks.keeps_messages

    def translate(self, message: Message) -> Result:
        """Return the result for one message. An unexpected exception leads to a dead letter with INTERNAL."""
        (result,) = self.translate_run((message,))
        return result

    def translate_run(self, messages: Sequence[Message]) -> list[Result]:
        """Return the results for messages in order, up to the first one that learns or needs metadata.

        Translating them one by one gives the same results, but takes a quarter longer. Within a run, the code and data
        of each step are still in the processor's cache when the next message arrives (docs/benchmarks.md).
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
                raise ValueError("a dialect returned no changes")
            if self.masks is not None:
                changes = [*map(self.masks.apply, changes)]
            events = [self._event(message, n, change) for n, change in enumerate(changes)]
            return Events(events, changes)
        except MessageError as error:
            return self._dead(message, error)
        except Exception as error:
            return self._internal(message, error)

    def lesson(self, message: Message) -> Learned | None:
        """Return the metadata in a message, or None for other messages, even invalid ones. Never raises."""
        outcome = self._decoded(message)
        return outcome if isinstance(outcome, Learned) else None

    def tables(self, message: Message) -> frozenset[TableName] | None:
        """Return a message's tables, even if it cannot be translated, or None if they are unknown. Never raises."""
        outcome = self._decoded(message)
        if isinstance(outcome, Changes):
            return tables_of(outcome.changes)
        if isinstance(outcome, Learned):
            return tables_of(outcome.announces)
        if not isinstance(self.dialect, Naming):
            return None
        try:
            return frozenset(self.dialect.tables(message))
        except Exception:  # also catches unexpected errors: the message was already rejected with a reason
            return None

    def announcement(self, message: Message, learned: Learned) -> Events | DeadLetter:
        """Return the events for a metadata message that also announces a change."""
        return self._events(message, learned.announces)

    def encode(self, codec: Encoder, message: Message, events: Events) -> list[Record] | DeadLetter:
        """Encode the records of all events in a message before the first one is written.

        Raises:
            UnregisteredSchema: a schema id is not known yet.
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

    def unexpected(self, error: Exception) -> MessageError:
        """Convert an unexpected exception to INTERNAL. If the changes come from a plug-in, convert it to
        DIALECT_FAILED. The exception's text might quote row data, but its type and the line of code cannot.
        """
        code = ErrorCode.DIALECT_FAILED if self.is_plugin else ErrorCode.INTERNAL
        return MessageError(code, f"{type(error).__name__} in {our_line(error)}")

    def dead(self, message: Message, error: MessageError) -> DeadLetter:
        """Return the dead letter for a message that cannot be read for an external reason."""
        return self._letter(message, error, error.reason)

    def missing(self, message: Message, needs: Needs) -> DeadLetter:
        """Return the dead letter for a message whose metadata did not arrive in time."""
        if needs.registry_id is None:
            reason = f"metadata {needs.key!r} {METADATA_MISSING}"
        else:
            reason = f"schema {needs.registry_id} of the schema registry is unknown; provide it with --schemas FILE"
        return self.dead(message, MessageError(ErrorCode.SCHEMA_MISSING, reason))

    def too_large(self, message: Message, topic: str, size: int, allowed: int) -> DeadLetter:
        """Return the dead letter for a message with a record that does not fit its topic."""
        reason = f"a record has {size} bytes, but topic {topic} only allows {allowed} (max.message.bytes)"
        return self.dead(message, MessageError(ErrorCode.TOO_LARGE, reason))

    def _dead(self, message: Message, error: MessageError) -> DeadLetter:
        return self._letter(message, error, str(error))

    def _letter(self, message: Message, error: MessageError, reason: str) -> DeadLetter:
        place = f"topic {message.topic}, partition {message.partition}, offset {message.offset}"
        line = line_of(error) if self.is_plugin and error.__traceback__ is not None else None
        text = bounded(reason if self.shows_messages else without_text(error, line))
        return DeadLetter(error.code, f"{self.dialect.name}: {text} ({place})", not self.shows_messages)

    def _check_size(self, message: Message) -> None:
        size = len(message.value or b"")
        if size > self.limits.value_bytes:
            allowed = f"{self.limits.value_bytes} are allowed (limits.value_bytes)"
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
        if self.order is not None and isinstance(change, RowChange):
            pos, pos_scope = self.order.place(message, n, change)
        # The arguments are positional, in field order, for the same reason as in `_event` of the envelope.
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
        """Return the strings that all events from a partition share: the beginning of `id`, and `pos_scope`."""
        return f"{self.source}/{topic}/{partition}/", f"{topic}:{partition}@{topic_id}"
