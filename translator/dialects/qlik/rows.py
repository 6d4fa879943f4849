"""Convert the sections `data` and `beforeData` to a row change (§5 and 7)."""

from __future__ import annotations

from msgspec import Struct

from cdc_core.envelope import TableSchema
from translator.dialects._json import JsonObject, field
from translator.dialects._rows import Findings, build_image
from translator.dialects.qlik.envelope_fields import Headers
from translator.dialects.qlik.frame import CONFLUENT_AVRO, ENVELOPED_AVRO, Frame
from translator.dialects.qlik.keys import KeyRow
from translator.dialects.qlik.masks import Gaps, Masks, Ordinals, check_byte_order
from translator.dialects.qlik.tables import Table
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Image, Limits, RowChange, Writer


class Sections(Struct, frozen=True):
    """The row as sent, before and after the change. `row` is the image that the operation is about.

    If nothing but the Kafka key contains the row of a DELETE, `row` is empty.
    """

    before: JsonObject | None
    after: JsonObject | None
    row: JsonObject


def read_sections(frame: Frame, op: str, limits: Limits, *, has_key: bool) -> Sections:
    """Return before and after images from `data` and `beforeData`, depending on the operation. Empty objects are
    ignored.

    All known programs that read real output find the row of a DELETE in `data`. Some writers, however, use `beforeData`
    (§7). If both images exist, one with nothing but nulls is ignored. The row may also be in the Kafka key alone (§11).
    Both images are then missing or contain only nulls. A writer schema in which `data` cannot be null requires this.

    Raises:
        MessageError: MISSING_FIELD, INVALID_FIELD, LIMIT_EXCEEDED.
    """
    data, before = _section(frame, "data", limits), _section(frame, "beforeData", limits)
    if op == "d":
        row = next(filter(_has_value, (before, data)), before or data)
        if has_key and not _has_value(row):
            return _ROW_IN_KEY
        if row is None:
            raise _no_row(frame)
        return Sections(row, None, row)
    if data is None:
        raise MessageError(ErrorCode.MISSING_FIELD, "data is missing, null or empty", path=f"{frame.path}.data")
    if op != "u" and _has_value(before):
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            "beforeData contains a row, which only an UPDATE or a DELETE can have",
            path=f"{frame.path}.beforeData",
        )
    return Sections(before if op == "u" else None, data, data)


_ROW_IN_KEY = Sections(None, None, {})


def _has_value(row: JsonObject | None) -> bool:
    """Return whether a row has more than nulls. An image that was not sent may consist of nulls."""
    return row is not None and any(value is not None for value in row.values())


def _no_row(frame: Frame) -> MessageError:
    reason = "a DELETE has no row in beforeData or data"
    return MessageError(ErrorCode.MISSING_FIELD, reason, path=frame.path)


def _section(frame: Frame, name: str, limits: Limits) -> JsonObject | None:
    section: JsonObject | None = field(frame.body, name, dict, frame.path, optional=True)
    if section and len(section) > limits.columns:
        raise MessageError(
            ErrorCode.LIMIT_EXCEEDED,
            f"the row has {len(section)} columns, but only {limits.columns} are allowed (limits.columns)",
            path=f"{frame.path}.{name}",
        )
    return section or None


def read_change(frame: Frame, headers: Headers, sections: Sections, table: Table, limits: Limits) -> RowChange:
    """Return a table's row change.

    Raises:
        MessageError: INVALID_FIELD if a mask or column does not belong to the table; MISSING_FIELD for a DELETE whose
            row has only nulls although the table has a key.
    """
    if headers.op == "d" and table.key_columns and not _has_value(sections.row):
        raise _no_row(frame)
    notes = [*headers.notes, *table.notes]
    masks = Masks.over(headers.column_mask, headers.change_mask, _ordinals(headers, sections, table, notes))
    if frame.variant in _AVRO:
        check_byte_order(headers.column_mask, headers.change_mask, masks.highest, headers.path)
    _check_columns(sections, masks.ordinals, frame.path)
    gaps = Gaps.of(masks, sections.before, sections.after, assumed=table.ordinals is None)
    unavailable = _unavailable(headers.op, sections.row, gaps, notes) if gaps or masks.column is None else None
    findings = Findings(sent=frame.sent)
    # In a table with a key, an old row with only nulls was not sent either.
    sent = headers.op != "u" or not table.key_columns or _has_value(sections.before)
    before = _image(sections.before if sent else None, gaps, table, findings, limits)
    after = _image(sections.after, gaps, table, findings, limits)
    changed = _changed(before, after, masks, table, notes) if headers.op == "u" else None
    if gaps and gaps.disproved:
        changed = None  # the bits in both masks are for the same columns
    if before is not None and after is not None and _has_disproved_null(before, after, masks, table):
        # It is unknown which of the other nulls were sent, as with a columnMask that is proved wrong.
        before = {name: value for name, value in before.items() if value is not None} or None
        if "CHANGE_MASK_CONTRADICTED" not in notes:
            notes.append("CHANGE_MASK_CONTRADICTED")
    return RowChange(
        headers.op,
        table.name,
        Writer(frame.variant, frame.basis, server=table.server, task=table.task),
        before=before,
        after=after,
        schema=_schema(sections, table, notes),
        key_columns=table.key_columns,
        key_kind=table.key_kind,
        changed=changed,
        unavailable=unavailable or None,
        issues=[*findings.issues] or None,
        ts_commit_us=headers.ts_commit_us,
        pos_native=headers.change_sequence,
        tx=headers.tx,
        notes=[*notes, *findings.notes] or None,
        ext=headers.ext,
        types=None if table.schema is None else table.schema.column_types,
    )


def read_delete_by_key(frame: Frame, headers: Headers, row: KeyRow, table: Table, limits: Limits) -> RowChange:
    """Return the DELETE of a row that only the Kafka key identifies. Masks are ignored, because they belong to a row
    that was not sent.
    """
    findings = Findings(sent=row.sent)
    before = build_image(row.cells.items(), row.converters, findings, limits)
    return RowChange(
        headers.op,
        table.name,
        Writer(frame.variant, frame.basis, server=table.server, task=table.task),
        before=before,
        schema=table.schema,
        key_columns=row.key_columns,
        key_kind=row.key_kind,
        issues=[*findings.issues] or None,
        ts_commit_us=headers.ts_commit_us,
        pos_native=headers.change_sequence,
        tx=headers.tx,
        notes=[*headers.notes, *table.notes, "ROW_FROM_KEY", *findings.notes],
        ext=headers.ext,
        types=None if table.schema is None else table.schema.column_types,
    )


_AVRO = frozenset({ENVELOPED_AVRO, CONFLUENT_AVRO})


def _image(
    section: JsonObject | None, gaps: Gaps | None, table: Table, findings: Findings, limits: Limits
) -> Image | None:
    """Return a section's image. `gaps` is set if some columns may not have been captured."""
    if section is None:
        return None
    withheld = frozenset(gaps.withheld(section)) if gaps else None
    cells = [cell for cell in section.items() if cell[0] not in withheld] if withheld else section.items()
    return build_image(cells, table.converters, findings, limits)


def _schema(sections: Sections, table: Table, notes: list[str]) -> TableSchema | None:
    """Return the schema. Return None if the row has columns that the operator did not declare, because the list is then
    incomplete.
    """
    sent = (sections.before or {}, sections.after or {})
    if table.schema is None or all(section.keys() <= table.converters.keys() for section in sent):
        return table.schema
    notes.append("COLUMNS_UNDECLARED")
    return None


def _ordinals(headers: Headers, sections: Sections, table: Table, notes: list[str]) -> Ordinals:
    """Return ordinals from metadata or, failing that, positions in the row, as in all samples. Return nothing if no
    mask needs ordinals.
    """
    if table.ordinals is not None:
        return table.ordinals
    if headers.column_mask is None and headers.change_mask is None:
        return {}
    notes.append("MASK_ORDINALS_ASSUMED")
    return {name: place for place, name in enumerate(sections.row, 1)}


def _check_columns(sections: Sections, ordinals: Ordinals, path: str) -> None:
    """Check ordinals. A column without an ordinal belongs to another version of the table, and no mask can show whether
    its null is a value.
    """
    for name, section in (("data", sections.after), ("beforeData", sections.before)):
        if ordinals and section is not None and not section.keys() <= ordinals.keys():
            stray = next(column for column in section if column not in ordinals)
            raise MessageError(
                ErrorCode.INVALID_FIELD,
                f"column {quote(stray)} has no ordinal, although {len(ordinals)} other columns have one",
                path=f"{path}.{name}",
            )


def _unavailable(op: str, row: JsonObject, gaps: Gaps | None, notes: list[str]) -> list[str]:
    """Return the columns whose values the source withheld, according to a columnMask with gaps. Without a mask, the
    withheld columns are not known.
    """
    if gaps is None:
        # A full load has no mask and sends every column. Otherwise, a null can mean "not captured".
        if op != "r" and None in row.values():
            notes.append("NULLS_ASSUMED")
        return []
    if gaps.disproved:
        notes.append("COLUMN_MASK_CONTRADICTED")
    return gaps.withheld(row)


def _has_disproved_null(before: Image, after: Image, masks: Masks, table: Table) -> bool:
    """Return whether the old row has a null in a column that now has a value, although the column did not change
    according to the changeMask.

    LOB columns have no bit in the mask (§5).
    """
    mask, ordinals = masks.change, masks.ordinals
    if mask is None:
        return False
    return any(
        value is None and after.get(name) is not None and name not in table.lobs and not mask >> ordinals[name] - 1 & 1
        for name, value in before.items()
    )


def _changed(
    before: Image | None, after: Image | None, masks: Masks, table: Table, notes: list[str]
) -> list[str] | None:
    """Return the columns that an UPDATE changed, from its changeMask, or None if the mask is incomplete.

    LOB columns have no bit in a changeMask (§5). If both images exist and differ in a column without a bit, the mask is
    neither used nor corrected.
    """
    if masks.change is None or table.lobs:
        return None
    if table.ordinals is None and masks.change_exceeds:
        notes.append("CHANGE_MASK_CONTRADICTED")
        return None
    changed = masks.changed()
    if before is not None and after is not None:
        differ = [name for name, value in before.items() if name in after and after[name] != value]
        if not set(differ) <= set(changed):
            notes.append("CHANGE_MASK_CONTRADICTED")
            return None
    return changed
