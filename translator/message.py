"""Define what a dialect reads and returns.

A dialect is `decode(Message) -> Outcome`. A dialect determines the operation, the table, old and new values, and the
source position. Keys, image states, positions, limits and dead letters are the same for all dialects. `translate`
implements them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cdc_core.envelope import Ddl, Issue, TableSchema, Tx
from translator.errors import ErrorCode, MessageError

Scalar: TypeAlias = str | int | float | bool | None
"""A canonical value: a JSON value, already encoded according to docs/design.md §4.2."""

Image: TypeAlias = dict[str, Scalar]
"""The canonical value of each column, in source order. NULL is None. Columns that were not sent are absent."""


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
    """Kafka's topic id, which changes when a topic is recreated. `-` without a broker (files)."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Input limits. If a message exceeds one of them, it becomes a dead letter with LIMIT_EXCEEDED."""

    value_bytes: int = 8 * 1024 * 1024
    json_depth: int = 64
    columns: int = 5_000
    rows: int = 10_000
    schema_text_bytes: int = 1024 * 1024
    schema_depth: int = 64
    issue_raw_chars: int = 256
    schemas: int = 20_000
    metadata_bytes: int = 64 * 1024 * 1024
    topics: int = 10_000


NAME_BYTES = 512
"""Maximum length of each part of a name, in bytes of UTF-8. No database reaches this limit: SQL Server allows 128
characters of at most 3 bytes each, Oracle 128 bytes, and MySQL 64 characters.

Names come from messages and are used as keys, labels and folders. Limiting their length therefore also limits how much
space a message can claim there.
"""


def check_name(what: str, name: str) -> None:
    """Check a name's length.

    Raises:
        MessageError: LIMIT_EXCEEDED.
    """
    if len(name) > NAME_BYTES // 4 and (size := len(name.encode("utf-8", "surrogatepass"))) > NAME_BYTES:
        reason = f"the name of a {what} has {size} bytes, but only {NAME_BYTES} are allowed"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)


class TableName(Struct, frozen=True, gc=False):
    """A table, named as in the source and in the same case. If the source does not have these levels, `db` and `schema`
    are None.

    Raises:
        MessageError: LIMIT_EXCEEDED if a part is too long.
    """

    db: str | None
    schema: str | None
    table: str

    def __post_init__(self) -> None:
        for part in (self.db, self.schema, self.table):
            if part is not None:
                check_name("table", part)


class Counted(Struct, frozen=True, gc=False, cache_hash=True):
    """The table and operation under which an event is counted. For an event without a row, the operation is its kind.

    Totals are looked up by these objects for every run, so each object stores its hash.
    """

    db: str | None
    schema: str | None
    table: str | None
    op: str


class Writer(Struct, frozen=True, gc=False):
    """The writer of a message, as envelope fields that do not depend on the row."""

    variant: str | None = None
    variant_basis: str | None = None
    dbms: str | None = None
    server: str | None = None
    task: str | None = None


class RowChange(Struct, gc=False):
    """One row from one message, before the common rules are applied.

    `before` and `after` contain only what was sent. `before_sparse` means that `before` lists only the changed columns,
    or a superset of them. All other columns have the same values as in `after`, and translate fills them in.
    `after_sparse` is the reverse: columns that are in `before` but missing from `after` are unchanged. `schema` is set
    only if the message declares the complete column list. `types` are the canonical types of columns known without a
    schema.
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
    """A change that is not a row: kind `schema` (requires `ddl`), `tx` or `watermark`.

    `after` contains the values that existing rows have in columns that a statement added.
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
    """The changes in a message that was understood, in order. There is at least one."""

    changes: list[Change]


class Skip(Struct, frozen=True):
    """The message has no change on purpose (a tombstone, a filler). The message is counted under `reason`, a fixed
    keyword.
    """

    reason: str


class Learned(Struct, frozen=True):
    """The message describes other messages. It is written to the metadata topic under `key`, and the catalog learns it.

    `announces` contains the changes that consumers also learn from the message. If a structure changed, this is a
    `schema` event.
    """

    key: str
    document: bytes
    announces: tuple[OtherChange, ...] = ()


class Needs(Struct, frozen=True):
    """The message cannot be read until the metadata `key` has been learned.

    If `registry_id` is set, the metadata is not in another message. It is the schema that the registry stores under
    this id. If `schema_text` is set, the message itself is complete. However, an output needs the id that the registry
    assigns to this schema under the subject `key`.
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
    """A guard's finding about a message, without row data. If `fatal` is set, nothing from the message may be
    written.
    """

    text: str
    fatal: bool


class Guard(Protocol):
    """Compares a partition's messages with each other. A guard never changes an event. It stops the source or warns."""

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the partition's next message.

        This is called before any part of the message is written.
        """
        ...

    def missed(self) -> None:
        """Record that the partition's next message has no changes because it became a dead letter."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A dialect that has guards."""

    def guard(self) -> Guard | None:
        """Return a new guard for one partition, or None if the options disable it."""
        ...


class Dialect(Protocol):
    """An input format with its options, created once. Apart from look-ups, the result of `decode` depends on nothing
    but the message.

    Raises:
        MessageError: the message becomes a dead letter.
    """

    name: str

    def decode(self, message: Message) -> Outcome: ...

    def learn(self, key: str, document: bytes) -> object:
        """Parse a `Learned` document, or a needed schema, into the value that the look-up returns for `key`."""
        ...


@runtime_checkable
class RequiresOptions(Protocol):
    """A dialect with facts that only the operator of a source knows, and for which no default is safe in a service."""

    def check_declared(self, options: Mapping[str, Any]) -> None:
        """Check the options of a configured source.

        Raises:
            ConfigError: an option is missing.
        """
        ...


@runtime_checkable
class Versioned(Protocol):
    """The result of `learn`, for documents under the same key that may contradict each other."""

    @property
    def version(self) -> tuple[int, str]:
        """The order of documents: a greater version is newer."""
        ...

    @property
    def content(self) -> object:
        """A value that is the same for all documents that lead to the same reading of rows."""
        ...

    @property
    def subject(self) -> str:
        """A readable name for what the document describes, such as a table."""
        ...


@runtime_checkable
class Naming(Protocol):
    """A dialect that can often identify the tables in a message that it rejects."""

    def tables(self, message: Message) -> Sequence[TableName]:
        """Return the tables of everything in the message, with the names that its events would use.

        Raises:
            MessageError: the tables cannot be determined.
        """
        ...


@runtime_checkable
class Learning(Protocol):
    """A dialect in which some messages describe other messages (`Learned`)."""

    learns: bool


@runtime_checkable
class Sequenced(Protocol):
    """A dialect whose `pos_native` orders the changes from one task (`order: native`, docs/design.md §4.4)."""

    native_position: str
    """A regular expression that matches a whole `pos_native`: at most 38 digits. A greater number is later."""


class DeclaredTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose columns or key the operator declares, because its messages do not contain them.

    `table` is a pattern for the table name as the source writes it (`OWNER.TABLE`), with `*` and `?`. `columns` maps
    column names to canonical types, in table order. Without `columns`, only the key is declared.
    """

    table: str
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None


class Setup(Struct, frozen=True):
    """The arguments that every dialect receives in addition to its own options."""

    source: str
    """The source's configured name."""
    limits: Limits = Limits()
    tables: tuple[DeclaredTable, ...] = ()
    lookup: Lookup = _nothing_learned
