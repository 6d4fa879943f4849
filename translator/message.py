"""The input of a dialect and its possible outcomes.

A dialect is `decode(Message) -> Outcome`. It says which operation, which table, old and new values and where the
source was; everything that all dialects share (keys, image states, positions, limits, dead letters) is done once,
in `translate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cdc_core.envelope import Ddl, Issue, TableSchema, Tx

Scalar: TypeAlias = str | int | float | bool | None
"""A canonical value: what JSON can carry, already encoded by the rules of docs/design.md §4.2."""

Image: TypeAlias = dict[str, Scalar]
"""Column name -> canonical value, in source order. A column that was not sent is absent; null is None."""


class Message(Struct, frozen=True, gc=False):
    """One Kafka record as it lay in the raw topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic_id: str = "-"
    """Kafka's id of the topic; a recreated topic has another. `-` where there is no broker (files)."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds for all input; beyond one of them a message is a dead letter LIMIT_EXCEEDED."""

    value_bytes: int = 8 * 1024 * 1024
    json_depth: int = 64
    columns: int = 5_000
    rows: int = 10_000
    schema_text_bytes: int = 1024 * 1024
    schema_depth: int = 64
    issue_raw_chars: int = 256


class TableName(Struct, frozen=True, gc=False):
    """A table as the source names it, case kept. `db` and `schema` are None where the source has no such level."""

    db: str | None
    schema: str | None
    table: str


class Writer(Struct, frozen=True, gc=False):
    """The writer of a message: envelope fields that do not depend on the row."""

    variant: str | None = None
    variant_basis: str | None = None
    dbms: str | None = None
    server: str | None = None
    task: str | None = None


class RowChange(Struct, gc=False):
    """One row of one message, before the common rules.

    `before` and `after` hold only what was sent. `before_sparse` says that `before` lists just (a superset of) the
    changed columns of a row whose other columns equal `after`: translate completes it. `after_sparse` is the mirror
    image: columns missing from `after` but present in `before` are unchanged.
    `schema` is set only when the complete column list is declared; `types` are the canonical types of columns where
    they are known without it.
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
    """A change that is no row: kind `schema` (needs `ddl`), `tx` or `watermark`.

    `after` holds the values that existing rows have in columns which a statement added.
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
    """The message was understood: its changes in order. At least one."""

    changes: list[Change]


class Skip(Struct, frozen=True):
    """The message carries nothing by design (a tombstone, a filler); counted under `reason`, a fixed word."""

    reason: str


class Learned(Struct, frozen=True):
    """The message describes other messages. It goes to the metadata topic under `key` and teaches the catalog.

    `announces` is what it says to consumers at the same time: a changed structure is an event of kind `schema`.
    """

    key: str
    document: bytes
    announces: tuple[OtherChange, ...] = ()


class Needs(Struct, frozen=True):
    """The message cannot be read before the metadata `key` is learned.

    With `registry_id` it is not another message that brings it: it is the text of that schema in the schema registry.
    With `schema_text` nothing is missing in it: an output wants the id that the registry gives this schema under the
    subject `key`.
    """

    key: str
    registry_id: int | None = None
    schema_text: str | None = None


Outcome: TypeAlias = Changes | Skip | Learned | Needs

Lookup: TypeAlias = Callable[[str], object | None]
"""Learned metadata by key, or None when it has not come yet."""


def _nothing_learned(key: str) -> object | None:
    return None


class Finding(Struct, frozen=True):
    """A guard's finding about a message, without row data. `fatal`: nothing of the message may be written."""

    text: str
    fatal: bool


class Guard(Protocol):
    """Holds the messages of one partition against each other. It changes no event: it stops the process, or warns."""

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Findings on the next message of the partition, before anything of it is written."""
        ...

    def missed(self) -> None:
        """The next message of the partition has no changes: it is a dead letter."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A dialect that has guards."""

    def guard(self) -> Guard | None:
        """A new guard, for one partition; None when the options want none."""
        ...


class Dialect(Protocol):
    """One input format with its options, built once. `decode` is pure but for its look-ups.

    Raises:
        MessageError: the message becomes a dead letter.
    """

    name: str

    def decode(self, message: Message) -> Outcome: ...

    def learn(self, key: str, document: bytes) -> object:
        """Parse the document of a `Learned`, or a needed schema, into what the look-up returns for `key`."""
        ...


@runtime_checkable
class HasFastPath(Protocol):
    """A dialect that reads the common messages in a faster way. The plain way reads every message, and is the meaning:
    `tests/translator/dialects/test_fast_paths.py` holds the two to each other.
    """

    def decode_plainly(self, message: Message) -> Outcome:
        """Return the same as `Dialect.decode`, or raise the same."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """The result of `learn` where two documents of one key may disagree."""

    @property
    def version(self) -> tuple[int, str]:
        """The greater is the newer."""
        ...

    @property
    def content(self) -> object:
        """Equal for documents by which rows are read alike."""
        ...

    @property
    def subject(self) -> str:
        """The described thing, for people: a table's name."""
        ...


@runtime_checkable
class Naming(Protocol):
    """A dialect that can often say of which tables a message is that it refuses."""

    def tables(self, message: Message) -> Sequence[TableName]:
        """The tables of everything in the message, named as its events would name them.

        Raises:
            MessageError: that cannot be told.
        """
        ...


@runtime_checkable
class Learning(Protocol):
    """A dialect of which some messages describe others (`Learned`)."""

    learns: bool


@runtime_checkable
class Sequenced(Protocol):
    """A dialect whose `pos_native` orders the changes of one task (`order: native`, docs/design.md §4.4)."""

    native_position: str
    """A regular expression for all of a `pos_native`: at most 38 digits, of which the greater is the later."""


class DeclaredTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose columns or key the operator declares, because its messages carry none.

    `table` is a pattern over the table's name as the source writes it (`OWNER.TABLE`), with `*` and `?`.
    `columns` maps names to canonical types, in table order; without it only the key is declared.
    """

    table: str
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None


class Setup(Struct, frozen=True):
    """The arguments that every dialect is built with, beside its own options."""

    source: str
    """Configured name of the source."""
    limits: Limits = Limits()
    tables: tuple[DeclaredTable, ...] = ()
    lookup: Lookup = _nothing_learned
