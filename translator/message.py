"""The input of a dialect and its possible outcomes.

A dialect is `decode(Message) -> Outcome`. It determines the operation, the table, old and new values, and the source
position. Everything that all dialects share (keys, image states, positions, limits, dead letters) is implemented once,
in `translate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cdc_core.envelope import Ddl, Issue, TableSchema, Tx

Scalar: TypeAlias = str | int | float | bool | None
"""A canonical value: a JSON value, already encoded by the rules of docs/design.md §4.2."""

Image: TypeAlias = dict[str, Scalar]
"""Column name -> canonical value, in source order. NULL is None, and a column that was not sent is absent."""


class Message(Struct, frozen=True, gc=False):
    """A Kafka record, as stored in the raw topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic_id: str = "-"
    """Kafka's id of the topic, which changes when a topic is recreated. `-` without a broker (files)."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits for all input. A message that exceeds one becomes a dead letter with LIMIT_EXCEEDED."""

    value_bytes: int = 8 * 1024 * 1024
    json_depth: int = 64
    columns: int = 5_000
    rows: int = 10_000
    schema_text_bytes: int = 1024 * 1024
    schema_depth: int = 64
    issue_raw_chars: int = 256


class TableName(Struct, frozen=True, gc=False):
    """A table, named as in the source, with its case. `db` and `schema` are None if the source has no such level."""

    db: str | None
    schema: str | None
    table: str


class Writer(Struct, frozen=True, gc=False):
    """The writer of a message: the envelope fields that do not depend on the row."""

    variant: str | None = None
    variant_basis: str | None = None
    dbms: str | None = None
    server: str | None = None
    task: str | None = None


class RowChange(Struct, gc=False):
    """One row of one message, before the common rules are applied.

    `before` and `after` contain only what was sent. `before_sparse`: `before` lists only (a superset of) the changed
    columns, and the other columns equal those in `after`; translate completes it. `after_sparse` is the reverse:
    columns missing from `after` but present in `before` are unchanged. `schema` is set only if the complete column list
    is declared. `types` are the canonical types of columns that are known without it.
    """

    op: str
    table: TableName
    writer: Writer
    before: Image | None = None
    after: Image | None = None
    before_sparse: bool = False
    after_sparse: bool = False
    schema: TableSchema | None = None
    key_columns: tuple[str, ...] = ()
    key_kind: str = "none"
    changed: list[str] | None = None
    unavailable: list[str] | None = None
    issues: list[Issue] | None = None
    ts_commit_us: int | None = None
    ts_capture_us: int | None = None
    pos_native: str | None = None
    tx: Tx | None = None
    notes: list[str] | None = None
    ext: dict[str, str] | None = None
    row: int = 0
    rows: int = 1
    types: Mapping[str, str] | None = None


class OtherChange(Struct):
    """A change other than a row: kind `schema` (requires `ddl`), `tx` or `watermark`.

    `after` contains the values that existing rows have in columns added by a statement.
    """

    kind: str
    writer: Writer
    table: TableName | None = None
    db: str | None = None
    ddl: Ddl | None = None
    schema: TableSchema | None = None
    ts_commit_us: int | None = None
    ts_capture_us: int | None = None
    pos_native: str | None = None
    tx: Tx | None = None
    notes: list[str] | None = None
    ext: dict[str, str] | None = None
    after: Image | None = None


Change: TypeAlias = RowChange | OtherChange


class Changes(Struct, gc=False):
    """The message was understood. Contains its changes, at least one, in order."""

    changes: list[Change]


class Skip(Struct, frozen=True):
    """The message intentionally has no change (a tombstone, a filler). It is counted under `reason`, a fixed word."""

    reason: str


class Learned(Struct, frozen=True):
    """The message describes other messages. It is written to the metadata topic under `key`, and the catalog learns it.

    `announces` is what the message also announces to consumers: a changed structure is an event of kind `schema`.
    """

    key: str
    document: bytes
    announces: tuple[OtherChange, ...] = ()


class Needs(Struct, frozen=True):
    """The message cannot be read before the metadata `key` is learned.

    With `registry_id`, the metadata is not in another message but is the text of that schema in the schema registry.
    With `schema_text`, the message itself is complete, but an output needs the id that the registry assigns to this
    schema under the subject `key`.
    """

    key: str
    registry_id: int | None = None
    schema_text: str | None = None


Outcome: TypeAlias = Changes | Skip | Learned | Needs

Lookup: TypeAlias = Callable[[str], object | None]
"""Returns learned metadata by key, or None if it has not arrived yet."""


def _nothing_learned(key: str) -> object | None:
    return None


class Finding(Struct, frozen=True):
    """A guard's finding about a message, without row data. If `fatal`, nothing from the message may be written."""

    text: str
    fatal: bool


class Guard(Protocol):
    """Compares the messages of one partition with each other. It never changes an event: it stops the process or
    warns.
    """

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return findings on the next message of the partition, before anything from it is written."""
        ...

    def missed(self) -> None:
        """Note that the next message of the partition has no changes because it is a dead letter."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A dialect that has guards."""

    def guard(self) -> Guard | None:
        """Return a new guard for one partition, or None if the options disable it."""
        ...


class Dialect(Protocol):
    """An input format with its options, created once. Apart from look-ups, `decode` is a pure function of the message.

    Raises:
        MessageError: the message becomes a dead letter.
    """

    name: str

    def decode(self, message: Message) -> Outcome: ...

    def learn(self, key: str, document: bytes) -> object:
        """Parse the document of a `Learned`, or a needed schema, into the value that the look-up returns for `key`."""
        ...


@runtime_checkable
class HasFastPath(Protocol):
    """A dialect with a fast path for common messages. The plain path reads every message and defines the correct
    result; `tests/translator/dialects/test_fast_paths.py` compares the two.
    """

    def decode_plainly(self, message: Message) -> Outcome:
        """Return or raise the same as `Dialect.decode`."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """The result of `learn`, for documents that can contradict each other under one key."""

    @property
    def version(self) -> tuple[int, str]:
        """Orders documents: the greater one is newer."""
        ...

    @property
    def content(self) -> object:
        """Equal for documents that lead to the same reading of rows."""
        ...

    @property
    def subject(self) -> str:
        """The name of what is described, for people: a table's name."""
        ...


@runtime_checkable
class Naming(Protocol):
    """A dialect that can often identify the tables of a message that it rejects."""

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the tables of everything in the message, named as its events would name them.

        Raises:
            MessageError: the tables cannot be determined.
        """
        ...


@runtime_checkable
class Learning(Protocol):
    """A dialect with messages that describe other messages (`Learned`)."""

    learns: bool


@runtime_checkable
class Sequenced(Protocol):
    """A dialect whose `pos_native` orders the changes of one task (`order: native`, docs/design.md §4.4)."""

    native_position: str
    """A regular expression that matches a whole `pos_native`: at most 38 digits. A greater number is later."""


class DeclaredTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose columns or key the operator declares, because its messages do not contain them.

    `table` is a pattern for the table's name as the source writes it (`OWNER.TABLE`), with `*` and `?`. `columns` maps
    names to canonical types, in table order. Without it, only the key is declared.
    """

    table: str
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None


class Setup(Struct, frozen=True):
    """The arguments that every dialect receives in addition to its own options."""

    source: str
    """Configured name of the source."""
    limits: Limits = Limits()
    tables: tuple[DeclaredTable, ...] = ()
    lookup: Lookup = _nothing_learned
