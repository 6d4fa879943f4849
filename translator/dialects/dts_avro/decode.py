"""One message -> its change: which operation, which images, when and where in the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from translator.dialects._rows import Findings, build_image
from translator.dialects._tables import DeclaredTables
from translator.dialects.dts_avro.layout import Layout, Layouts, Shape
from translator.dialects.dts_avro.names import place, table_of_row
from translator.dialects.dts_avro.reader import Record, RecordReader
from translator.dialects.dts_avro.schema import EMPTY_OBJECT
from translator.dialects.dts_avro.types import MICROSECOND_SOURCES, MYSQL_FAMILY
from translator.dialects.dts_avro.values import Reading
from translator.envelope import Ddl, Tx
from translator.errors import ErrorCode, FatalError, MessageError, unknown
from translator.message import Changes, Image, Message, OtherChange, Outcome, RowChange, Setup, Skip, TableName, Writer
from translator.options import parse_options

Cells: TypeAlias = Sequence[Any]
"""One image: per column None, or a pair (branch, payload)."""

MOCK_BYTES = 2
"""A value of at most so many bytes only moves the offset of the tracking service (formats/dts_avro.md section 2)."""


class Options(Struct, frozen=True):
    """What the operator may say about a source of this dialect."""

    fraction_unit: Literal["auto", "micros", "nanos"] = "auto"
    """Unit of `DateTime.millis`; auto goes by source type and position."""
    unique_key_as_key: bool = False
    """A table without a primary key is keyed by its first unique key, whose columns may be null."""
    logical_names: bool = False
    """Sharded sources: the database and the table of the tags l_db_name and l_tb_name instead of the physical ones."""
    extras: bool = False
    """Keep the id, the transaction id, the recovery position and all tags of the record in the event's `ext`."""


class _Row(Struct, frozen=True):
    """A row operation: its letter, and whether it has each image (None: it may)."""

    op: str
    before: bool | None
    after: bool | None


_ROWS: Mapping[str, _Row] = {
    "INSERT": _Row("c", before=False, after=True),
    "UPDATE": _Row("u", before=None, after=True),
    "DELETE": _Row("d", before=True, after=False),
    "INIT": _Row("r", before=False, after=True),
}
_STATEMENTS = frozenset({"DDL", "COMMAND"})
_SKIPPED: Mapping[str, str] = {
    "BEGIN": "transaction_mark",
    "COMMIT": "transaction_mark",
    "ROLLBACK": "transaction_mark",
    "ABORT": "transaction_mark",
    "HEARTBEAT": "heartbeat",
    "CHECKPOINT": "checkpoint",
    "FILL": "fill",
    "FINISH": "finish",
    "CONTROL": "control",
    "RDB": "rdb",
    "NOOP": "noop",
}
OPERATIONS = frozenset({*_ROWS, *_STATEMENTS, *_SKIPPED})


class DtsAvro:
    """Records of Alibaba DTS in bare Avro (formats/dts_avro.md)."""

    name = "dts_avro"

    def __init__(self, setup: Setup, options: Mapping[str, Any]) -> None:
        self._options = parse_options(Options, options, self.name)
        self._limits = setup.limits
        self._reader = RecordReader(setup.limits)
        declared = DeclaredTables(setup.source, setup.tables)
        self._layouts = Layouts(setup.source, declared, unique_key_as_key=self._options.unique_key_as_key)

    def decode(self, message: Message) -> Outcome:
        """The one change that a record carries, or the reason to skip it."""
        value = message.value
        if value is None:
            return Skip("tombstone")
        if len(value) <= MOCK_BYTES:
            return Skip("empty")
        record, version = self._reader.read(value)
        operation = record["operation"]
        if operation in _SKIPPED:
            return Skip(_SKIPPED[operation])
        if operation in _ROWS:
            return Changes([self._row(record, version)])
        if operation in _STATEMENTS:
            return Changes([self._statement(record, version)])
        raise MessageError(ErrorCode.UNKNOWN_OPERATION, unknown("operation", operation, OPERATIONS), path="$.operation")

    def learn(self, key: str, document: bytes) -> object:
        """Nothing: every record describes itself."""
        raise FatalError(f"{self.name} learns no metadata")

    def _row(self, record: Record, version: str) -> RowChange:
        operation = _ROWS[record["operation"]]
        fields = _fields(record)
        before, after, notes = _images(record, operation, len(fields))
        sent = [image for image in (before, after) if image is not None]
        table, physical = self._table(record)
        layout = self._layouts.of(self._shape(record, table, fields), sent)
        findings = Findings()
        return RowChange(
            op=operation.op,
            table=table,
            writer=_writer(record, version),
            before=self._image(layout, before, findings),
            after=self._image(layout, after, findings),
            schema=layout.schema,
            key_columns=layout.key_columns,
            key_kind=layout.schema.key_kind,
            unavailable=_withheld(layout, sent[-1]),
            issues=[*findings.issues] or None,
            ts_commit_us=_commit_us(record["sourceTimestamp"]),
            ts_capture_us=_capture_us(record["tags"]),
            pos_native=record["sourcePosition"] or None,
            tx=_tx(record),
            notes=[*layout.notes, *notes, *physical, *findings.notes] or None,
            ext=self._ext(record),
        )

    def _statement(self, record: Record, version: str) -> OtherChange:
        """DDL: the plain text stands where the after image would be (section 3)."""
        texts = [text for name in ("afterImages", "beforeImages") if isinstance(text := record[name], str)]
        if not any(texts):
            reason = f"{record['operation']} without its text in either image"
            raise MessageError(ErrorCode.MISSING_FIELD, reason, path="$.afterImages")
        where = place(record["objectName"])
        return OtherChange(
            kind="schema",
            writer=_writer(record, version),
            table=where.table,
            db=where.db,
            ddl=Ddl(type=record["operation"], sql=next(filter(None, texts))),
            ts_commit_us=_commit_us(record["sourceTimestamp"]),
            ts_capture_us=_capture_us(record["tags"]),
            pos_native=record["sourcePosition"] or None,
            tx=_tx(record),
            ext=self._ext(record),
        )

    def _table(self, record: Record) -> tuple[TableName, list[str]]:
        """The table, and the note that keeps the physical name when the logical one is taken."""
        tags = record["tags"]
        physical = table_of_row(record["objectName"])
        if self._options.logical_names and tags.get("l_db_name") and tags.get("l_tb_name"):
            return TableName(tags["l_db_name"], None, tags["l_tb_name"]), [f"PHYSICAL_TABLE={record['objectName']}"]
        return physical, []

    def _shape(self, record: Record, table: TableName, fields: tuple[tuple[str, int], ...]) -> Shape:
        source_type = record["source"]["sourceType"]
        return Shape(
            source_type=source_type,
            reading=Reading(mysql=source_type in MYSQL_FAMILY, digits=self._fraction_digits(record)),
            table=table,
            fields=fields,
            pk_uk_info=record["tags"].get("pk_uk_info"),
        )

    def _fraction_digits(self, record: Record) -> int:
        """Section 4.4: nanos but for MySQL and PostgreSQL, whose physical-log reader (`<->`) writes nanos too."""
        if self._options.fraction_unit != "auto":
            return _DIGITS[self._options.fraction_unit]
        micros = record["source"]["sourceType"] in MICROSECOND_SOURCES and "<->" not in record["sourcePosition"]
        return _DIGITS["micros" if micros else "nanos"]

    def _image(self, layout: Layout, image: Cells | None, findings: Findings) -> Image | None:
        if image is None:
            return None
        return build_image(_sent(layout, image), layout.converters, findings, self._limits)

    def _ext(self, record: Record) -> dict[str, str] | None:
        if not self._options.extras:
            return None
        numbers = {name: str(record[name]) for name in _EXTRA_NUMBERS if name in record}
        return {**numbers, **{name: record[name] for name in _EXTRA_TEXTS}, **_tag_names(record["tags"])}


_DIGITS: Mapping[str, int] = {"micros": 6, "nanos": 9}
_EXTRA_NUMBERS = ("version", "id", "bornTimestamp")
_EXTRA_TEXTS = ("safeSourcePosition", "sourceTxid")


def _tag_names(tags: Mapping[str, str]) -> dict[str, str]:
    return {f"tag.{name}": value for name, value in tags.items()}


# -- the parts of a row


def _fields(record: Record) -> tuple[tuple[str, int], ...]:
    fields = record["fields"]
    if isinstance(fields, list) and fields:
        return tuple([(field["name"], field["dataTypeNumber"]) for field in fields])
    if record["source"]["sourceType"] == "MongoDB":
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, "a MongoDB document has no columns", path="$.fields")
    if isinstance(fields, str):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, "fields is text, not a list of columns", path="$.fields")
    raise MessageError(ErrorCode.MISSING_FIELD, "a row without its columns", path="$.fields")


def _images(record: Record, operation: _Row, columns: int) -> tuple[Cells | None, Cells | None, list[str]]:
    """Both images and notes. INIT was never seen: its row is taken from either image, but not from two (section 11)."""
    name, notes = record["operation"], []
    sent = {"beforeImages": record["beforeImages"], "afterImages": record["afterImages"]}
    if name == "INIT" and sent["afterImages"] is None and sent["beforeImages"] is not None:
        sent = {"beforeImages": None, "afterImages": sent["beforeImages"]}
        notes.append("INIT_FROM_BEFORE")
    for (field, image), expected in zip(sent.items(), (operation.before, operation.after), strict=True):
        _check_image(name, field, image, expected, columns)
    return sent["beforeImages"], sent["afterImages"], notes


def _check_image(operation: str, field: str, image: Any, expected: bool | None, columns: int) -> None:
    path = f"$.{field}"
    if image is None:
        if expected:
            raise MessageError(ErrorCode.MISSING_FIELD, f"{operation} without {field}", path=path)
        return
    if expected is False:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"{operation} with {field}", path=path)
    if isinstance(image, str):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"{operation} with text for {field}", path=path)
    if len(image) != columns:
        reason = f"{field} has {len(image)} values for {columns} columns"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)


_NONE = (EMPTY_OBJECT, "NONE")
_NULL = (EMPTY_OBJECT, "NULL")


def _sent(layout: Layout, image: Cells) -> list[tuple[str, object]]:
    """The cells that carry something: NONE is a place without a value, NULL another way to write null."""
    cells = zip(layout.names, image, strict=True)
    return [(name, None if cell == _NULL else cell) for name, cell in cells if cell != _NONE]


def _withheld(layout: Layout, image: Cells) -> list[str] | None:
    return [name for name, cell in zip(layout.names, image, strict=True) if cell == _NONE] or None


# -- who, when and where


def _writer(record: Record, version: str) -> Writer:
    return Writer(
        variant=version,
        variant_basis="certain",
        dbms=record["source"]["sourceType"],
        server=record["tags"].get("server_id"),
    )


_FIRST_MILLIS = 10**10
_LAST_MILLIS = 10**14
"""Beyond the year 5000: no time."""


def _commit_us(source_timestamp: int) -> int | None:
    """Seconds, or milliseconds from 10^10 up, as the vendor's code tells them apart (section 6); 0 is no time."""
    if not 0 < source_timestamp < _LAST_MILLIS:
        return None
    return source_timestamp * (1_000 if source_timestamp >= _FIRST_MILLIS else 1_000_000)


def _capture_us(tags: Mapping[str, str]) -> int | None:
    millis = tags.get("readerThroughoutTime", "")
    if not (millis.isascii() and millis.isdigit() and len(millis) <= 14):
        return None
    return int(millis) * 1_000 or None


_NO_TRANSACTION = frozenset({"", "0"})
"""MySQL sources write `0` whatever the transaction (section 3)."""


def _tx(record: Record) -> Tx | None:
    txid = record["sourceTxid"]
    return None if txid in _NO_TRANSACTION else Tx(txid)
