"""Everything that Python passes to the native path: table layouts, and how a source's messages are written.

Each dialect produces a `NativeLayout` from its own types. `codecs/native_table.py` converts it to a `NativeTable` of
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cdc_core.envelope import ChangeEvent, Origin, TableSchema, Tx
from translator.message import Counted, Finding, Guard, Message, TableName, Writer
from translator.values.native_kinds import NativeKind
from translator.values.scalar import Converter


class NativeEra(Struct, frozen=True):
    """The format of a Canal writer's messages whose `ts`, in milliseconds, is within bounds."""

    low: int
    high: int
    data_is_before: bool = False
    """In an update with two images, `data` contains the before image."""

    deleted_in_old: bool = False
    """The row of a delete is in `old`."""

    is_ambiguous: bool = False
    """The writer is unknown, and an update with only complete images has two meanings."""


class CanalReading(Struct, frozen=True):
    """The options of a Canal source that affect how a common row message is read."""

    eras: tuple[NativeEra, ...]
    by_mark: bool
    """A message's values determine its era, in the extension's order of marks."""

    marks: bool
    """Certain values reveal that the writer is not the declared one. The plain path handles messages with such
    values."""

    tidb: bool
    """Rows may have the field `_tidb`."""

    any_scalars: bool
    """Cells may be numbers and booleans, not only strings and nulls."""

    gtid_names_transaction: bool
    value_bytes: int
    rows: int
    is_checked: bool
    """The continuity check needs evidence about each row."""

    changed_alone: bool
    """`old` lists only the changed columns. An update that reveals another writer is left to the plain path."""


class SharePlexReading(Struct, frozen=True):
    """A SharePlex source's options that affect how a common row message is read."""

    words: Mapping[bytes, int]
    """Each operation's number by its keywords, as JSON."""

    decimal_scn: bool
    key_is_key: bool
    value_bytes: int
    columns: int


class DtsAvroReading(Struct, frozen=True):
    """A DTS Avro source's options that affect how a common row message is read."""

    operations: tuple[int, ...]
    """The ordinals of row operations, in the order used in a layout."""

    all_operations: int
    source_types: int
    binlog_sources: tuple[int, ...]
    """The ordinals of source types whose positions are parsed."""

    utf8_charsets: tuple[bytes, ...]
    """The accepted spellings of UTF-8."""

    name_tags: tuple[bytes, ...]
    """The tags that contain the table name, if a source identifies its tables by tags."""

    extras: bool
    value_bytes: int
    columns: int


class QlikReading(Struct, frozen=True):
    """A Qlik source's options that affect how a common row message is read."""

    words: Mapping[bytes, int]
    """Each operation's number by its keywords, as JSON."""

    waits: bool
    """The metadata that a message refers to determines how it is read."""

    key_is_table: bool
    """The Kafka key identifies the table if no declaration does."""

    carried: tuple[str, ...]
    """Headers to include in `ext`."""

    value_bytes: int
    columns: int


class LayoutColumn(Struct, frozen=True):
    """A column: how its cells are read natively, and the converter for unusual spellings (None: unchanged)."""

    name: str
    kind: NativeKind
    convert: Converter | None
    is_open: bool = False
    """The column's cells determine whether it contains text or bytes, and may contradict its kind."""


class LayoutOperation(Struct, frozen=True):
    """The common properties of one operation's events: letter, writer, whether they refer to a schema, and notes."""

    op: str
    writer: Writer
    with_schema: bool
    notes: tuple[str, ...]


NativeStep: TypeAlias = "tuple[str, int, tuple[tuple[bytes, NativeStep], ...]]"
"""A step in reading Avro: its kind in `src/avro_json.rs`, a number if the kind needs one, and its parts. Record fields
and enum symbols have names, as JSON.
"""


class NativeLayout(Struct, frozen=True):
    """A table's rows, with columns in order."""

    table: TableName
    columns: tuple[LayoutColumn, ...]
    key_columns: tuple[str, ...]
    key_kind: str
    schema: TableSchema | None
    operations: tuple[Sequence[LayoutOperation | None], ...]
    """By era, then by operation in the extension's order. Operations that are None are left to the plain path."""

    undeclared: LayoutColumn | None = None
    """Used for every unknown column. None if rows must not have unknown columns."""

    ordinals: tuple[int, ...] = ()
    """The columns' bits in masks, counted from 1, in ascending order, or () if they equal the positions in a row."""

    has_lobs: bool = False
    """Some columns have no bit in a changeMask."""

    record: NativeStep | None = None
    """Steps for reading an Avro message."""


class NativeColumn(Struct, frozen=True):
    """A column in the extension's format: its name as JSON and as Avro."""

    quoted: bytes
    avro_name: bytes
    kind: NativeKind
    convert: Converter | None
    is_open: bool


class AvroOperation(Struct, frozen=True):
    """The parts that the canonical events of one operation share in Avro, in the extension's format."""

    header: Callable[[], bytes]
    """Returns the bytes before each datum. Raises an exception if they are not known yet."""

    splits_key_changes: bool = False
    """Key changes become two events, and are left to the plain path."""


class JsonOperation(Struct, frozen=True):
    """The parts that the canonical events of one operation share in JSON, in the extension's format."""

    names: bytes
    """The members from `kind` to `table`."""

    schema_id: bytes
    """The value of `schema_id`."""

    splits_key_changes: bool = False
    """Key changes become two events, and are left to the plain path."""


class ProjectedChange(Struct, frozen=True):
    """One change to a row in a Debezium projection: the operation, as JSON, and the before image."""

    op: bytes
    before: str
    """`none`, `sent`, or `key`: only the key columns."""


class ProjectedColumn(Struct, frozen=True):
    """A schema column in the extension's format, with its name as JSON."""

    name: bytes
    has_type: bool
    is_float: bool


class SchemaBlocks(Protocol):
    """The schema blocks for records with one operation, as JSON."""

    def value(self, before: bytes | None, after: bytes | None, commit_us: int | None) -> bytes:
        """Return the block for a value with these images and this commit time."""
        ...

    def key(self, key: bytes) -> bytes:
        """Return the block for a key."""
        ...


AvroColumn: TypeAlias = tuple[bytes, str, int, int]
"""A column in an Avro schema: its name as JSON, its type, and the precision and scale of a decimal number."""


class NativeAvroTable(Struct, frozen=True):
    """A table's keys and rows in Avro, for one schema and one set of key types, in the extension's format."""

    key_header: Callable[[], bytes]
    """Returns the bytes before each key. Raises an exception if they are not known yet."""

    value_header: Callable[[], bytes]
    """Returns the bytes before each value, like `key_header`."""

    key: tuple[AvroColumn, ...]
    columns: tuple[AvroColumn, ...]


class AvroTables(Struct, frozen=True):
    """A table's keys and rows in Avro, for one operation."""

    find: Callable[[bytes | None], NativeAvroTable]
    """Returns the table for rows with this key, as JSON, or without a key. Raises an exception if the rows are
    rejected.
    """

    key_only: bool
    """Only the key of a row is written, because the types of its other columns are not known."""


class DebeziumOperation(Struct, frozen=True):
    """The parts that a Debezium projection's records with one operation share, in the extension's format."""

    offsets: int
    """Records with offsets below this have an ordinal."""

    tombstones: bool
    omits: bool
    """If a row lacks one of the table's columns, the column is omitted and listed in a header."""

    source: bytes
    """The field `source`, as JSON or Avro, up to its `sequence`."""

    origin: bytes
    """The rest of `source`, after the times."""

    changes: tuple[tuple[ProjectedChange, ...] | None, ...]
    """Indexed by before image (none, with gaps, complete), then by whether the row has a key.

    Rows whose entry is None are left to the plain path.
    """

    columns: tuple[ProjectedColumn, ...]
    """The columns in the schema to which the events refer."""

    blocks: SchemaBlocks | None
    """None if keys and values have no schema block."""

    tables: AvroTables | None = None
    """None if keys and values are JSON."""


class UpsertOperation(Struct, frozen=True):
    """The parts that an upsert projection's records with one operation share, in the extension's format."""

    rejects: bool
    """The codec rejects all rows."""

    deletes: bool
    """Rows become tombstones."""

    omits: bool
    """If a row lacks one of the table's columns, the column is omitted and listed in a header."""

    by_columns: bool
    """A record key has only the columns, not the name of the table."""

    columns: tuple[ProjectedColumn, ...]
    """The columns in the schema to which the events refer."""

    blocks: SchemaBlocks | None
    """None if keys and values have no schema block."""


OutputOperation: TypeAlias = AvroOperation | JsonOperation | DebeziumOperation | UpsertOperation


@runtime_checkable
class NativeCodec(Protocol):
    """A codec that the native path supports."""

    def encode(self, event: ChangeEvent, schema: TableSchema | None = None) -> list[Any]: ...

    def native_operation(self, event: ChangeEvent, schema: TableSchema | None) -> OutputOperation | None:
        """Return what the records for one operation share, or None if the table has no records.

        Args:
            event: a sample event with this operation, without position, times, key and images.
        """
        ...


class TableOperation(Struct, frozen=True):
    """Everything that events with one operation share, in Avro, with their headers, in the extension's format."""

    layout: LayoutOperation
    table: TableName
    counted: Counted

    schema_key: str | None
    """The key in the schemas topic for the schema that the events refer to."""

    names: bytes
    state: bytes
    schema_id: bytes
    notes: bytes
    notes_merged: bytes
    first_headers: list[tuple[str, str | bytes | None]]
    last_headers: list[tuple[str, str | bytes | None]]
    fixed_size: int
    """The size of a canonical record without its key, value and id, as computed by `record_size`."""

    outputs: tuple[OutputOperation | None, ...]
    """For each output that the extension writes."""

    schema: TableSchema | None
    """The schema to which the events refer."""

    event_names: tuple[str | None, ...]
    """The fields from `kind` to `table`, for events that Python encodes."""

    event_schema_id: str | None


class NativeTable(Struct, frozen=True):
    """A table in the extension's format."""

    columns: tuple[NativeColumn, ...]
    sorted: tuple[int, ...]
    """The columns sorted by name."""

    key: tuple[int, ...]
    key_names: tuple[bytes, ...]
    """The names of the key columns, as JSON. Also set if no columns are known."""

    undeclared: NativeColumn | None
    ordinals: tuple[int, ...]
    has_lobs: bool
    record: NativeStep | None
    key_kind: bytes
    record_key: bytes
    """The record key up to the row's own key."""

    operations: tuple[tuple[TableOperation | None, ...], ...]


class TakenMessage(Protocol):
    """A message that the native path translated: its records for each output, and their shared properties."""

    @property
    def operation(self) -> TableOperation: ...

    @property
    def rows(self) -> int:
        """The number of rows in the message."""
        ...

    @property
    def outputs(self) -> list[list[Any]]:
        """Records for each output, canonical topic first. They have the attributes of `Record`."""
        ...

    @property
    def events(self) -> list[ChangeEvent]:
        """Each row's event, if Python encodes an output."""
        ...

    @property
    def ts_commit_us(self) -> int | None: ...

    def insert(self, output: int, records: list[Any], /) -> None:
        """Insert the records for an output that Python encodes."""
        ...


OperationTotal: TypeAlias = tuple[TableOperation, int, int, "int | None"]
"""The number of an operation's messages and rows in a run, and the last commit time in microseconds since 1970, if one
is known."""


@runtime_checkable
class NativeGuard(Guard, Protocol):
    """A guard that also handles messages from the native path."""

    def inspect_taken(
        self, messages: Sequence[Message], taken: Sequence[TakenMessage]
    ) -> tuple[int, Sequence[Finding]]:
        """Inspect the partition's next messages up to and including the first one with findings, before anything from
        them is written. Return how many were inspected, and the findings of the last one.
        """
        ...


class NativeReader(Protocol):
    """One source's native path."""

    def take(
        self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]
    ) -> Sequence[TakenMessage | str]:
        """Return the result for each message of a partition: its records, or the reason why it was not translated."""
        ...


class EventClasses(Struct, frozen=True):
    """The classes of an event and of two of its fields. The extension calls them with all fields in order."""

    event: type[ChangeEvent] = ChangeEvent
    origin: type[Origin] = Origin
    transaction: type[Tx] = Tx


class RecordForm(Struct, frozen=True):
    """The layout of one source's records, in the extension's format."""

    source: str
    events: EventClasses | None
    """None if Python encodes no output."""

    max_records: tuple[int, ...]
    """The maximum record size of each output that the extension writes, in bytes."""

    convert_cell: Callable[[bytes, Any], bytes]
    """Converts a cell as JSON to a canonical value as JSON, using its converter."""

    convert_bytes: Callable[[bytes, Any], bytes]
    """Converts a cell in bytes with another encoding to a canonical value as JSON, using its converter."""

    table: Callable[[NativeLayout], NativeTable | None]
    """Compiles a layout. If the result is None, the layout's rows are left to the plain path."""

    def compiler(self, layout_of: Callable[..., NativeLayout | None]) -> Callable[..., NativeTable | None]:
        """Return the function that creates a table from the bytes that describe it in a message."""

        def compile_table(*described: bytes) -> NativeTable | None:
            layout = layout_of(*described)
            return None if layout is None else self.table(layout)

        return compile_table


class NativeRows(Protocol):
    """A dialect's support for the native path, for one source."""

    def open(self, form: RecordForm) -> NativeReader:
        """Return the source's message reader. Requires the extension."""
        ...


@runtime_checkable
class HasNativeRows(Protocol):
    """A dialect that the native path supports."""

    def native_rows(self) -> NativeRows | None:
        """Return the dialect's support for the native path, or None if the options require the plain path for all
        messages.
        """
        ...
