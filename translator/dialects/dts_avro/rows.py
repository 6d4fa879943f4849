"""A row record -> its change (formats/dts_avro.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from translator.dialects._rows import Findings, build_image
from translator.dialects._tables import DeclaredTables
from translator.dialects.dts_avro.head import head_of
from translator.dialects.dts_avro.kinds import Contrary
from translator.dialects.dts_avro.layout import MAX_LAYOUTS, Layout, Layouts, Shape
from translator.dialects.dts_avro.names import table_of_row
from translator.dialects.dts_avro.options import Options
from translator.dialects.dts_avro.record import EMPTY_NONE, EMPTY_NULL, NULL_CELL, Cell, Fields, Image, Record
from translator.dialects.dts_avro.types import MICROSECOND_SOURCES, MONGODB, MONGODB_COLUMNS, MYSQL_FAMILY
from translator.dialects.dts_avro.values import Reading
from translator.errors import ErrorCode, MessageError
from translator.message import Image as CanonicalImage
from translator.message import RowChange, Setup, TableName
from translator.values import Assumed, Unrepresentable


class _Row(Struct, frozen=True):
    """A row operation: its letter, and whether it has each image (None: it may)."""

    op: str
    before: bool | None
    after: bool | None


ROWS: Mapping[str, _Row] = {
    "INSERT": _Row("c", before=False, after=True),
    "UPDATE": _Row("u", before=None, after=True),
    "DELETE": _Row("d", before=True, after=False),
    "INIT": _Row("r", before=False, after=True),
}

_INIT = "INIT"
_INIT_FROM_BEFORE = "INIT_FROM_BEFORE"
_MONGODB_DOCUMENT = "MONGODB_DOCUMENT"
_NULL_BY_NAME = "EMPTY_OBJECT_NULL"


class RowReader:
    """Reads the row records of a source."""

    def __init__(self, setup: Setup, options: Options) -> None:
        self._options = options
        self._limits = setup.limits
        declared = DeclaredTables(setup.source, setup.tables)
        self._layouts = Layouts(setup.source, declared, unique_key_as_key=options.unique_key_as_key)
        self._known: dict[tuple[object, ...], Layout] = {}

    def change(self, record: Record) -> RowChange:
        """The one row of the record."""
        operation = ROWS[record.operation]
        fields = _fields(record)
        before, after, notes = _images(record, operation, len(fields.columns))
        layout = self._layout(record, fields)
        findings = Findings()
        layout, old, new = self._row(layout, before, after, record.others, findings)
        head = head_of(record, extras=self._options.extras)
        sent = before if after is None else after
        # By position, in the order of the fields: this runs once a row, and by keyword it takes four times as long.
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

    def _layout(self, record: Record, fields: Fields) -> Layout:
        tags = record.tags
        key = (
            record.source_type,
            record.object_name,
            "<->" in record.source_position,
            fields.raw,
            tags.get("pk_uk_info"),
            self._options.logical_names and (tags.get("l_db_name"), tags.get("l_tb_name")),
        )
        layout = self._known.get(key)
        if layout is None:
            layout = self._layouts.of(self._shape(record, fields))
            if len(self._known) >= MAX_LAYOUTS:
                self._known.clear()
            self._known[key] = layout
        return layout

    def _shape(self, record: Record, fields: Fields) -> Shape:
        table, notes = self._table(record)
        source_type = record.source_type
        return Shape(
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

    def _table(self, record: Record) -> tuple[TableName, tuple[str, ...]]:
        """The table, and the note that keeps the physical name when the logical one is taken."""
        tags = record.tags
        physical = table_of_row(record.object_name)
        if record.source_type == MONGODB and record.fields is None:
            return physical, (_MONGODB_DOCUMENT,)
        if self._options.logical_names and tags.get("l_db_name") and tags.get("l_tb_name"):
            return TableName(tags["l_db_name"], None, tags["l_tb_name"]), (f"PHYSICAL_TABLE={record.object_name}",)
        return physical, ()

    def _fraction_digits(self, record: Record) -> int:
        """Section 4.4: nanos but for MySQL and PostgreSQL, whose physical-log reader (`<->`) writes nanos too."""
        if self._options.fraction_unit != "auto":
            return _DIGITS[self._options.fraction_unit]
        micros = record.source_type in MICROSECOND_SOURCES and "<->" not in record.source_position
        return _DIGITS["micros" if micros else "nanos"]

    # -- the images

    def _row(
        self,
        layout: Layout,
        before: Image | None,
        after: Image | None,
        others: Sequence[int] | None,
        findings: Findings,
    ) -> tuple[Layout, CanonicalImage | None, CanonicalImage | None]:
        """Both images, and the layout by which they were read."""
        if not layout.contradicted:
            try:
                old, new = self._read(layout, before, after, others, findings)
                return layout, old, new
            except Contrary:
                layout.contradicted = True
                findings.issues, findings.notes = {}, {}
        layout = self._layouts.for_row(layout, [image for image in (before, after) if image is not None])
        old, new = self._read(layout, before, after, others, findings)
        return layout, old, new

    def _read(
        self,
        layout: Layout,
        before: Image | None,
        after: Image | None,
        others: Sequence[int] | None,
        findings: Findings,
    ) -> tuple[CanonicalImage | None, CanonicalImage | None]:
        old = self._image(layout, before, findings)
        if old is None or after is None or others is None or len(old) < len(after) or _has_empty(after):
            return old, self._image(layout, after, findings)
        new = old.copy()  # what did not change is read already
        try:
            for index in others:
                cell = after[index]
                new[layout.names[index]] = layout.readers[index][cell[0]](cell)
        except (Unrepresentable, Assumed):
            return old, self._with_findings(layout, after, findings)
        return old, new

    def _image(self, layout: Layout, image: Image | None, findings: Findings) -> CanonicalImage | None:
        if image is None:
            return None
        if _has_empty(image):
            return self._with_findings(layout, image, findings)
        try:
            return {
                name: readers[cell[0]](cell)
                for name, readers, cell in zip(layout.names, layout.readers, image, strict=True)
            }
        except (Unrepresentable, Assumed):
            return self._with_findings(layout, image, findings)

    def _with_findings(self, layout: Layout, image: Image, findings: Findings) -> CanonicalImage:
        """The cells that carry something: NONE is a place without a value, NULL another way to write null."""
        cells = [(name, _NULLS.get(cell, cell)) for name, cell in zip(layout.names, image, strict=True)]
        by_name = [
            f"{_NULL_BY_NAME}={name}" for name, cell in zip(layout.names, image, strict=True) if cell == EMPTY_NULL
        ]
        findings.notes |= dict.fromkeys(by_name)
        sent = [(name, cell) for name, cell in cells if cell != EMPTY_NONE]
        return build_image(sent, layout.converters, findings, self._limits)


_DIGITS: Mapping[str, int] = {"micros": 6, "nanos": 9}
_NULLS: Mapping[Cell, None] = {NULL_CELL: None, EMPTY_NULL: None}


def _has_empty(image: Image) -> bool:
    return EMPTY_NONE in image or EMPTY_NULL in image


def _withheld(layout: Layout, image: Image) -> list[str]:
    return [name for name, cell in zip(layout.names, image, strict=True) if cell == EMPTY_NONE]


# -- the parts of a row, checked


def _fields(record: Record) -> Fields:
    fields = record.fields
    if isinstance(fields, Fields) and fields.columns:
        return fields
    if isinstance(fields, str):
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, "fields is text, not a list of columns", path="$.fields")
    if fields is None and record.source_type == MONGODB:
        return MONGODB_COLUMNS
    raise MessageError(ErrorCode.MISSING_FIELD, "a row without its columns", path="$.fields")


def _images(record: Record, operation: _Row, columns: int) -> tuple[Image | None, Image | None, Sequence[str]]:
    """Both images and notes. INIT was never seen: its row is taken from either image, but not from two (section 11)."""
    name, before, after = record.operation, record.before, record.after
    notes: Sequence[str] = ()
    if name == _INIT and after is None and before is not None:
        before, after, notes = None, before, [_INIT_FROM_BEFORE]
    return (
        _checked(name, "beforeImages", before, operation.before, columns),
        _checked(name, "afterImages", after, operation.after, columns),
        notes,
    )


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
