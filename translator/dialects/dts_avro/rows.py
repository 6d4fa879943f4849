"""Convert a row record to its change (§3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from cdc_core.sized_cache import MOST_PACKED, SizedMap
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._rows import Findings, build_image
from translator.dialects.dts_avro.envelope_fields import head_of
from translator.dialects.dts_avro.kinds import Contrary
from translator.dialects.dts_avro.layout import Layout, Layouts, RowShape
from translator.dialects.dts_avro.names import table_of_row
from translator.dialects.dts_avro.options import Options
from translator.dialects.dts_avro.record import EMPTY_NONE, EMPTY_NULL, NULL_CELL, Cell, DtsRecord, Fields, Image
from translator.dialects.dts_avro.types import MICROSECOND_SOURCES, MONGODB, MONGODB_COLUMNS, MYSQL_FAMILY
from translator.dialects.dts_avro.values import Reading
from translator.errors import ErrorCode, MessageError
from translator.message import Image as CanonicalImage
from translator.message import RowChange, Setup, TableName
from translator.values import Assumed, Unrepresentable

_Canonical: TypeAlias = CanonicalImage | None


class _Row(Struct, frozen=True):
    """A row operation: its code in events and, for each image, whether the operation has it (None: optional)."""

    op: str
    before: bool | None
    after: bool | None


ROWS: Mapping[str, _Row] = {
    "INSERT": _Row("c", before=False, after=True),
    "UPDATE": _Row("u", before=None, after=True),
    "DELETE": _Row("d", before=True, after=False),
    "INIT": _Row("r", before=False, after=True),
}

LOGICAL_NAMES = ("l_db_name", "l_tb_name")
"""The tags with the logical database and table."""

_INIT = "INIT"
_INIT_FROM_BEFORE = "INIT_FROM_BEFORE"
_MONGODB_DOCUMENT = "MONGODB_DOCUMENT"
_NULL_BY_NAME = "EMPTY_OBJECT_NULL"
_KEY_OLD_UNKNOWN = "KEY_OLD_UNKNOWN"


class RowReader:
    """Reads a source's row records."""

    def __init__(self, setup: Setup, options: Options) -> None:
        self._options = options
        self._limits = setup.limits
        declared = DeclaredTables(setup.source, setup.tables)
        self._layouts = Layouts(setup.source, declared, unique_key_as_key=options.unique_key_as_key)
        self._known: SizedMap[tuple[object, ...], Layout] = SizedMap(most=MOST_PACKED)

    def change(self, record: DtsRecord) -> RowChange:
        """Return the only row in the record."""
        operation = ROWS[record.operation]
        fields = _fields(record)
        images, notes = _images(record, operation, len(fields.columns))
        layout = self._layout(record, fields)
        layout, old, new, findings = self._row(layout, images)
        head = head_of(record, extras=self._options.extras)
        sent = images.before if images.after is None else images.after
        if operation.op == "u" and (old is None or len(old) < len(layout.names)) and _lacks_key(layout, old):
            notes = [*notes, _KEY_OLD_UNKNOWN]
        # The arguments are positional, in field order: this runs once per row, and keyword arguments take four times as
        # long.
        return RowChange(
            operation.op,
            layout.shape.table,
            head.writer,
            old,
            new,
            False,  # before_sparse
            False,  # after_sparse
            layout.schema,
            layout.key_columns,
            layout.schema.key_kind,
            None,  # changed
            _withheld(layout, sent) if sent is not None and EMPTY_NONE in sent else None,
            [*findings.issues] or None,
            head.ts_commit_us,
            head.ts_capture_us,
            head.pos_native,
            head.tx,
            [*layout.notes, *notes, *findings.notes] or None,
            head.ext,
        )

    # -- the layout

    def layout(self, record: DtsRecord) -> Layout:
        """Return the layout for the record's row if the row does not contradict it.

        Raises:
            MessageError: the record has no columns, or no table name.
        """
        return self._layout(record, _fields(record))

    def layout_as_sent(self, record: DtsRecord) -> Layout:
        """Return the layout for the record's row.

        Raises:
            MessageError: as for `layout`, or the images do not fit a row.
        """
        fields = _fields(record)
        images, _ = _images(record, ROWS[record.operation], len(fields.columns))
        return self._layouts.for_row(self._layout(record, fields), images.sent)

    def _layout(self, record: DtsRecord, fields: Fields) -> Layout:
        tags = record.tags
        key = (
            record.source_type,
            record.object_name,
            "<->" in record.source_position,
            fields.raw,
            tags.get("pk_uk_info"),
            self._options.logical_names and tuple(map(tags.get, LOGICAL_NAMES)),
        )
        layout = self._known.get(key)
        if layout is None:
            layout = self._layouts.of(self._shape(record, fields))
            self._known.keep(key, layout)
        return layout

    def _shape(self, record: DtsRecord, fields: Fields) -> RowShape:
        table, notes = self._table(record)
        source_type = record.source_type
        return RowShape(
            source_type,
            Reading(
                mysql=source_type in MYSQL_FAMILY,
                digits=self._fraction_digits(record),
                declared_unit=self._options.fraction_unit != "auto",
            ),
            table,
            fields.columns,
            record.tags.get("pk_uk_info"),
            notes,
        )

    def table(self, record: DtsRecord) -> TableName:
        """Return a record's table.

        Raises:
            MessageError: the record has no table name.
        """
        table, _ = self._table(record)
        return table

    def _table(self, record: DtsRecord) -> tuple[TableName, tuple[str, ...]]:
        """Return the table. If the logical one is used, also return the note that keeps the physical name."""
        tags = record.tags
        physical = table_of_row(record.object_name)
        if record.source_type == MONGODB and record.fields is None:
            return physical, (_MONGODB_DOCUMENT,)
        db, table = map(tags.get, LOGICAL_NAMES)
        if self._options.logical_names and db and table:
            return TableName(db, None, table), (f"PHYSICAL_TABLE={record.object_name}",)
        return physical, ()

    def _fraction_digits(self, record: DtsRecord) -> int:
        """Return the number of fraction digits (§4.4): 6 (micros) for MySQL and PostgreSQL, and 9 (nanos) for other
        sources. A source position with `<->`, from a physical-log reader, always means nanos.
        """
        if self._options.fraction_unit != "auto":
            return _DIGITS[self._options.fraction_unit]
        micros = record.source_type in MICROSECOND_SOURCES and "<->" not in record.source_position
        return _DIGITS["micros" if micros else "nanos"]

    # -- the images

    def _row(self, layout: Layout, images: _Images) -> tuple[Layout, _Canonical, _Canonical, Findings]:
        """Return the layout used to read the images, both images, and the findings about their values."""
        if not layout.contradicted:
            findings = Findings()
            try:
                old, new = self._read(layout, images, findings)
                return layout, old, new, findings
            except Contrary:
                layout.contradicted = True
        layout = self._layouts.for_row(layout, images.sent)
        findings = Findings()  # findings from a discarded layout refer to types that the row does not have
        old, new = self._read(layout, images, findings)
        return layout, old, new, findings

    def _read(self, layout: Layout, images: _Images, findings: Findings) -> tuple[_Canonical, _Canonical]:
        before, after, others = images.before, images.after, images.others
        old = self._image(layout, before, findings)
        if old is None or after is None or others is None or len(old) < len(after) or not _has_all_values(after):
            return old, self._image(layout, after, findings)
        new = old.copy()  # unchanged values were already read
        try:
            for index in others:
                cell = after[index]
                new[layout.names[index]] = layout.readers[index][cell[0]](cell)
        except (Unrepresentable, Assumed):
            return old, self._with_findings(layout, after, findings)
        return old, new

    def _image(self, layout: Layout, image: Image | None, findings: Findings) -> _Canonical:
        if image is None:
            return None
        if _has_all_values(image):
            try:
                return {
                    name: readers[cell[0]](cell)
                    for name, readers, cell in zip(layout.names, layout.readers, image, strict=True)
                }
            except (Unrepresentable, Assumed):
                pass
        return self._with_findings(layout, image, findings)

    def _with_findings(self, layout: Layout, image: Image, findings: Findings) -> CanonicalImage:
        """Return the cells with content. NONE is a position without a value, and NULL is another way to write null."""
        cells = [(name, _NULLS.get(cell, cell)) for name, cell in zip(layout.names, image, strict=True)]
        by_name = [
            f"{_NULL_BY_NAME}={name}" for name, cell in zip(layout.names, image, strict=True) if cell == EMPTY_NULL
        ]
        findings.notes |= dict.fromkeys(by_name)
        sent = [(name, cell) for name, cell in cells if cell != EMPTY_NONE]
        return build_image(sent, layout.converters, findings, self._limits)


_DIGITS: Mapping[str, int] = {"micros": 6, "nanos": 9}
_NULLS: Mapping[Cell, None] = {NULL_CELL: None, EMPTY_NULL: None}


def _has_all_values(image: Image) -> bool:
    """Return whether each position contains a value or an ordinary null."""
    return EMPTY_NONE not in image and EMPTY_NULL not in image


def _lacks_key(layout: Layout, old: _Canonical) -> bool:
    """Return whether an update lacks its row's previous key, so that a key change cannot be detected."""
    return bool(layout.key_columns) and (old is None or not old.keys() >= set(layout.key_columns))


def _withheld(layout: Layout, image: Image) -> list[str]:
    return [name for name, cell in zip(layout.names, image, strict=True) if cell == EMPTY_NONE]


# -- the parts of a row, checked


def _fields(record: DtsRecord) -> Fields:
    fields = record.fields
    if isinstance(fields, Fields) and fields.columns:
        return fields
    if isinstance(fields, str):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, "fields is a string, not a list of columns", path="$.fields")
    if fields is None and record.source_type == MONGODB:
        return MONGODB_COLUMNS
    raise MessageError(ErrorCode.MISSING_FIELD, "a row has no columns", path="$.fields")


class _Images(Struct):
    """The checked images of a row, and what the reader found out about them."""

    before: Image | None
    after: Image | None
    others: Sequence[int] | None

    @property
    def sent(self) -> list[Image]:
        """The images that exist."""
        return [image for image in (self.before, self.after) if image is not None]


def _images(record: DtsRecord, operation: _Row, columns: int) -> tuple[_Images, Sequence[str]]:
    """Return both images and notes. INIT has never been observed. An INIT's row may be in either image, but not in both
    (§11).
    """
    name, before, after = record.operation, record.before, record.after
    notes: Sequence[str] = ()
    if name == _INIT and after is None and before is not None:
        before, after, notes = None, before, [_INIT_FROM_BEFORE]
    before = _checked(name, "beforeImages", before, operation.before, columns)
    after = _checked(name, "afterImages", after, operation.after, columns)
    return _Images(before, after, record.others), notes


def _checked(
    operation: str, field: str, image: Image | str | None, expected: bool | None, columns: int
) -> Image | None:
    path = f"$.{field}"
    if image is None:
        if expected:
            raise MessageError(ErrorCode.MISSING_FIELD, f"{operation} without {field}", path=path)
        return None
    if expected is False:
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"{operation} with {field}", path=path)
    if isinstance(image, str):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, f"{operation} with text for {field}", path=path)
    if len(image) != columns:
        reason = f"{field} has {len(image)} values for {columns} columns"
        raise MessageError(ErrorCode.INVALID_FIELD, reason, path=path)
    return image
