"""Everything that Python tells the native path: layouts of tables, and the form of a source's messages.

A dialect gives a `NativeLayout` in its own terms; `codecs/native_table.py` makes a `NativeTable` of it, in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.message import Finding, Guard, Message, TableName, Writer
from translator.values.native_kinds import NativeKind
from translator.values.scalar import Converter


class NativeEra(Struct, frozen=True):
    """The form of a Canal writer's messages whose `ts`, in milliseconds, is within bounds."""

    low: int
    high: int
    data_is_before: bool = False
    """In an update with two images, `data` holds the one before."""

    deleted_in_old: bool = False
    """A deletion has its row in `old`."""


class CanalReading(Struct, frozen=True):
    """The options of a Canal source, as far as they decide how a common row message is read."""

    eras: tuple[NativeEra, ...]
    marks: bool
    """Certain values show another writer than the declared one; the plain way looks for them."""

    tidb: bool
    """Rows may have the member `_tidb`."""

    gtid_names_transaction: bool
    value_bytes: int
    rows: int
    keeps_images: bool
    """A guard asks for the images of rows."""

    changed_alone: bool
    """`old` lists the changed columns alone; the plain path reads an update that shows another writer."""


class SharePlexReading(Struct, frozen=True):
    """The options of a SharePlex source, as far as they decide how a common row message is read."""

    words: Mapping[bytes, int]
    """The number of the operation by the words for it, as JSON."""

    decimal_scn: bool
    key_is_key: bool
    value_bytes: int
    columns: int


class DtsAvroReading(Struct, frozen=True):
    """The options of a DTS Avro source, as far as they decide how a common row message is read."""

    operations: tuple[int, ...]
    """The ordinals of the operations of rows, in the order in which a layout has them."""

    all_operations: int
    source_types: int
    binlog_sources: tuple[int, ...]
    """The ordinals of the types of sources whose positions are taken apart."""

    utf8_charsets: tuple[bytes, ...]
    """The names of UTF-8, as they are spelled."""

    name_tags: tuple[bytes, ...]
    """The tags of which a table has its name, where a source names its tables by tags."""

    extras: bool
    value_bytes: int
    columns: int


class QlikReading(Struct, frozen=True):
    """The options of a Qlik source, as far as they decide how a common row message is read."""

    words: Mapping[bytes, int]
    """The number of the operation by the words for it, as JSON."""

    waits: bool
    """Metadata that a message names say how it is read."""

    key_is_table: bool
    """The Kafka key names the table, where nothing declared does."""

    carried: tuple[str, ...]
    """Headers that go into `ext`."""

    value_bytes: int
    columns: int


class LayoutColumn(Struct, frozen=True):
    """A column: the kind of its cells, and the converter of those of an unusual spelling (None: as they are)."""

    name: str
    kind: NativeKind
    convert: Converter | None
    is_open: bool = False
    """Its cells tell whether it holds text or bytes, and may contradict the kind."""


class LayoutOperation(Struct, frozen=True):
    """The events of one operation: their letter, who wrote them, whether they name a schema, and their notes."""

    op: str
    writer: Writer
    with_schema: bool
    notes: tuple[str, ...]


NativeStep: TypeAlias = "tuple[str, int, tuple[tuple[bytes, NativeStep], ...]]"
"""A step in reading Avro: its kind in `src/avro_json.rs`, a number that it may need, and its parts,
of which the members of a record and the symbols of an enum have names, as JSON."""


class NativeLayout(Struct, frozen=True):
    """The rows of a table; the columns in their order."""

    table: TableName
    columns: tuple[LayoutColumn, ...]
    key_columns: tuple[str, ...]
    key_kind: str
    schema: TableSchema | None
    operations: tuple[Sequence[LayoutOperation | None], ...]
    """By era, then by operation in the order of the extension; None is left to the plain way."""

    undeclared: LayoutColumn | None = None
    """Stands for each column that is not known; None where a row may have no such column."""

    ordinals: tuple[int, ...] = ()
    """The bits of the columns in masks, from 1 and rising; () where their places in a row are these."""

    has_lobs: bool = False
    """Some columns have no bit in a mask of changes."""

    record: NativeStep | None = None
    """The reading of a message that comes in Avro."""


class NativeColumn(Struct, frozen=True):
    """As the extension takes it: the name as JSON and as Avro."""

    quoted: bytes
    avro_name: bytes
    kind: NativeKind
    convert: Converter | None
    is_open: bool


class ProjectedChange(Struct, frozen=True):
    """The change that a Debezium projection has of a row: its operation, as JSON, and the image that stands before."""

    op: bytes
    before: str
    """`none`, `sent`, or `key`: the columns of the key alone."""


class ProjectedColumn(Struct, frozen=True):
    """A column of a schema, as the extension takes it: its name as JSON."""

    name: bytes
    has_type: bool
    is_float: bool


class SchemaBlocks(Protocol):
    """The schema blocks of the records of one operation, as JSON."""

    def value(self, before: bytes | None, after: bytes | None, commit_us: int | None) -> bytes:
        """Return the block of a value with these images, whose change was committed then."""
        ...

    def key(self, key: bytes) -> bytes:
        """Return the block of a key."""
        ...


class ProjectedOperation(Struct, frozen=True):
    """As the extension takes it: what the records of one operation in a Debezium projection share."""

    source: bytes
    """The member `source`, as JSON, up to its `sequence`."""

    origin: bytes
    """The rest of it, after the times."""

    changes: tuple[tuple[ProjectedChange, ...] | None, ...]
    """By the image before (none, one with gaps, a whole one), then by whether there is a key.

    None is left to the plain way.
    """

    columns: tuple[ProjectedColumn, ...]
    """Those of the schema that the events name."""

    blocks: SchemaBlocks | None
    """None where keys and values have no schema."""


class TableOperation(Struct, frozen=True):
    """As the extension takes it: everything that events of one operation share, in Avro, and their headers."""

    layout: LayoutOperation
    table: TableName
    counted: tuple[str | None, str | None, str | None, str]
    """Database, schema, table and operation, as the account counts events."""

    schema_key: str | None
    """The key in the schemas topic of the schema that the events name."""

    names: bytes
    state: bytes
    schema_id: bytes
    notes: bytes
    notes_merged: bytes
    first_headers: list[tuple[str, str | bytes | None]]
    last_headers: list[tuple[str, str | bytes | None]]
    fixed_size: int
    """The bytes of a record of the canonical topic beside its key, its value and its id, as `record_size` counts."""

    projections: tuple[ProjectedOperation, ...]


class NativeTable(Struct, frozen=True):
    """As the extension takes it."""

    columns: tuple[NativeColumn, ...]
    sorted: tuple[int, ...]
    """The columns in the order of their names."""

    key: tuple[int, ...]
    key_names: tuple[bytes, ...]
    """As JSON; also where no columns are known."""

    undeclared: NativeColumn | None
    ordinals: tuple[int, ...]
    has_lobs: bool
    record: NativeStep | None
    key_kind: bytes
    record_key: bytes
    """The record key up to the row's own key."""

    operations: tuple[tuple[TableOperation | None, ...], ...]


class RowImages(Protocol):
    """The images of a row that was taken, for a guard: as JSON, with columns in the order of their names.

    `before` is completed where it was sent in part, else `whole`. `key` is None where the table has none.
    """

    @property
    def key(self) -> bytes | None: ...
    @property
    def before(self) -> bytes | None: ...
    @property
    def after(self) -> bytes | None: ...
    @property
    def whole(self) -> bool: ...


class TakenMessage(Protocol):
    """A message that the native path translated: its records for each output, and what they have in common."""

    @property
    def operation(self) -> TableOperation: ...

    @property
    def outputs(self) -> list[list[Any]]:
        """For each output its records, the canonical topic first: there, one for each row."""
        ...

    @property
    def ts_commit_us(self) -> int | None: ...
    @property
    def ts_capture_us(self) -> int | None: ...
    @property
    def images(self) -> Sequence[RowImages]:
        """Those of each row, where a guard asks for them."""
        ...


@runtime_checkable
class NativeGuard(Guard, Protocol):
    """A guard that takes messages of the native path, too, by the images that it kept of them."""

    def inspect_taken(self, message: Message, taken: TakenMessage) -> list[Finding]:
        """Findings on the next message of the partition, before anything of it is written."""
        ...


class NativeReader(Protocol):
    """The native path of one source."""

    def take(
        self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]
    ) -> Sequence[TakenMessage | str]:
        """Return for each message of a partition what became of it: its records, or the reason why it is not taken."""
        ...


class ProjectionForm(Struct, frozen=True):
    """The form of the records of one Debezium projection, as the extension takes it."""

    max_record: int
    offsets: int
    """Those below have an ordinal."""

    tombstones: bool
    omits: bool
    """A column of the table that a row does not have is left out, and a header names it."""

    operation: Callable[[str, str, NativeLayout, LayoutOperation], ProjectedOperation]
    """Makes what the records of one operation share, of the source and the dialect by name."""


class RecordForm(Struct, frozen=True):
    """The form of the records of one source, as the extension takes it."""

    source: str
    header: bytes
    """The bytes before a datum."""

    max_record: int
    projections: tuple[ProjectionForm, ...]
    record: Callable[..., object]
    convert_cell: Callable[[bytes, Any], bytes]
    """Makes a canonical value, as JSON, of a cell as JSON and its converter."""

    convert_bytes: Callable[[bytes, Any], bytes]
    """The same of a cell as bytes of another encoding, which its converter reads."""

    table: Callable[[NativeLayout], NativeTable | None]
    """None is left to the plain way."""

    def compiler(self, layout_of: Callable[..., NativeLayout | None]) -> Callable[..., NativeTable | None]:
        """Return what makes a table of the bytes that describe it in a message."""

        def compile_table(*described: bytes) -> NativeTable | None:
            layout = layout_of(*described)
            return None if layout is None else self.table(layout)

        return compile_table


class NativeRows(Protocol):
    """The part of a dialect that the native path asks, for one source."""

    def open(self, form: RecordForm) -> NativeReader:
        """Return the reader of its messages; the extension must be there."""
        ...


@runtime_checkable
class HasNativeRows(Protocol):
    """A dialect of which the native path can take messages."""

    def native_rows(self) -> NativeRows | None:
        """Return what it asks; None where the options leave all messages to the plain way."""
        ...
