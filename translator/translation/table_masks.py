"""Compute the masks of one table: which columns are masked, and how rows and schemas look without the masked values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, structs

from cdc_core.envelope import Column, Issue, TableSchema
from cdc_core.statement_notes import COLUMN_REWRITTEN, StatementNote, statement_notes
from translator.config.mask_rules import MaskRule
from translator.errors import ConfigError, ErrorCode, MessageError, quote
from translator.message import Image, OtherChange, RowChange
from translator.translation.mask_values import TEXT, Masked

NOTE = "MASKED"
"""Note on an event from which a mask removed something. `MASKED=col` means that this column is masked.
"""

KEPT = 4096
"""Maximum number of tables per source to cache. Names of tables and columns come from messages, so there may be many.
"""

_LISTS = 16
"""Maximum number of column lists to cache per table, and of keys to cache per list."""

_NAMES = 8192
"""Maximum number of columns to cache per list. No table has that many columns."""

_NO_TYPES: Mapping[str, str] = {}


class Mask(Struct, frozen=True):
    """A column's mask."""

    rule: MaskRule
    value: Masked

    @property
    def drops(self) -> bool:
        return self.rule.action == "drop"


class ColumnMasks(dict[str, Mask | None]):
    """Column masks by name, computed on demand for one list of types."""

    def __init__(self, types: Mapping[str, str], rules: Sequence[tuple[MaskRule, Mask | None]]) -> None:
        super().__init__()
        self.types = types
        self.clear_names: set[str] = set()
        """The columns that have no mask. In most tables, nearly all rows only have such columns."""
        self.checked: set[tuple[str, ...]] = set()
        """The keys that do not have to be masked."""
        self._rules = rules

    @cached_property
    def none(self) -> bool:
        """Return whether none of the columns with a known type is masked."""
        return all(self[name] is None for name in self.types)

    def leave(self, change: RowChange) -> bool:
        """Return whether a row certainly needs no masking. This is true of nearly all rows. The check takes 1 us."""
        clear, before, after = self.clear_names, change.before, change.after
        return (
            (after is None or after.keys() <= clear)
            and (before is None or before.keys() <= clear)
            and change.issues is None
            and change.key_columns in self.checked
            and (change.changed is None or clear.issuperset(change.changed))
            and (change.unavailable is None or clear.issuperset(change.unavailable))
            and (change.schema is None or self.none)
            and (change.ext is None or (change.schema is not None and not any(map(_of_row, change.ext))))
        )

    def __missing__(self, name: str) -> Mask | None:
        if len(self) >= _NAMES:
            self.clear()
            self.clear_names.clear()
        found = self[name] = self._find(name)
        if found is None:
            self.clear_names.add(name)
        return found

    def _find(self, name: str) -> Mask | None:
        """Return the mask from the first rule that matches. A rule that keeps a column must match with certainty. A
        masking rule also matches when in doubt.
        """
        type_ = self.types.get(name)
        for rule, mask in self._rules:
            fits = rule.matches_type(type_)
            if (fits or (fits is None and mask is not None)) and rule.matches_column(name):
                return mask
        return None


class TableMasks:
    """The masks for one table."""

    def __init__(
        self,
        name: str,
        rules: Sequence[tuple[MaskRule, Mask | None]],
        warn: Callable[[str, Iterable[str]], None],
    ) -> None:
        self._name = name
        self._rules = rules
        self._warn = warn
        self._warned = False
        self._masks: dict[int, ColumnMasks] = {}
        self._schemas: dict[str, TableSchema] = {}

    def masks_of(self, types: Mapping[str, str]) -> ColumnMasks:
        """Return the masks for columns with these types."""
        # Mappings are compared by identity, because a dialect uses one mapping for all rows with the same layout. The
        # mapping is kept, so that no other mapping can get the same id.
        found = self._masks.get(id(types))
        if found is None:
            if len(self._masks) >= _LISTS:
                self._masks.clear()
            found = self._masks[id(types)] = ColumnMasks(types, self._rules)
        return found

    def row(self, change: RowChange) -> RowChange:
        """Mask a row in place.

        Raises:
            MessageError: the message has a key that a rule would remove.
        """
        schema = change.schema
        masks = self.masks_of(schema.column_types if schema is not None else change.types or _NO_TYPES)
        if masks.leave(change):
            return change
        if change.key_columns not in masks.checked:
            try:
                self.check_key(masks, change.key_columns)
            except ConfigError as error:
                # The key comes only from this message, and must not stop other tables.
                raise MessageError(ErrorCode.KEY_MISSING, str(error)) from None
        touched: dict[str, Mask] = {}
        change.before = _masked(change.before, masks, touched)
        change.after = _masked(change.after, masks, touched)
        if change.issues:
            change.issues = _issues(change.issues, masks, touched)
        left_out = _leave_names_out(change, masks, touched)
        if schema is not None:
            change.schema = self.schema(schema)
        if change.ext is not None:
            left_out = _leave_members_out(change, certain=schema is not None and masks.none) or left_out
        notes = [f"{NOTE}={name}" for name, mask in touched.items() if not mask.drops]
        if left_out:
            notes.append(NOTE)
        if notes:
            change.notes = [*(change.notes or ()), *notes]
        return change

    def check_key(self, masks: ColumnMasks, key: tuple[str, ...]) -> None:
        """Check that masks leave a usable key.

        Raises:
            ConfigError: rows would have no key, several rows would have the same key, or the result depends on an
                unknown type.
        """
        for name in key:
            mask = masks[name]
            if mask is None:
                continue
            place = f"masks: table {quote(self._name, 200)}: column {quote(name)} is part of the key"
            if mask.rule.matches_type(masks.types.get(name)) is None:
                raise ConfigError(
                    f"{place}, and a mask rule depends on its type, which is unknown. Declare the type (tables:), "
                    "or add an earlier rule for this column (mask: keep, or hash)"
                )
            if mask.rule.action != "hash":
                raise ConfigError(
                    f"{place}, and a rule applies {mask.rule.action}, which would make rows indistinguishable. A "
                    "key column can only be hashed, or kept by an earlier rule (mask: keep). If the key in the "
                    "messages is wrong, declare the table's key (tables:)"
                )
        if len(masks.checked) >= _LISTS:
            masks.checked.clear()
        masks.checked.add(key)
        hashed = [name for name in key if masks[name] is not None]
        if hashed and not self._warned:
            self._warned = True
            self._warn(self._name, hashed)

    def schema(self, schema: TableSchema) -> TableSchema:
        """Return the schema for masked rows."""
        found = self._schemas.get(schema.topic_key)
        if found is None:
            if len(self._schemas) >= _LISTS:
                self._schemas.clear()
            found = self._schemas[schema.topic_key] = self._masked_schema(schema)
        return found

    def statement(self, change: OtherChange) -> bool:
        """Mask a statement's announcement in place. Returns whether any part was left out.

        The default of a masked column is one of its values, so it is not passed on. The event only says that the column
        was rewritten.
        """
        typed = {note.column: note for note in statement_notes(change.notes) if note.column is not None}
        types = {column: note.type for column, note in typed.items() if note.type and column in (change.after or ())}
        masks = ColumnMasks(types, self._rules)
        kept = [self._statement_note(note, masks) for note in change.notes or ()]
        notes = [*dict.fromkeys(note for note in kept if note is not None)]
        if notes == [*(change.notes or ())]:
            return False
        after = {name: value for name, value in (change.after or {}).items() if masks[name] is None}
        change.notes, change.after = notes or None, after or None
        return True

    @staticmethod
    def _statement_note(text: str, masks: ColumnMasks) -> str | None:
        found = statement_notes((text,))
        note = found[0] if found else None
        mask = None if note is None or note.column is None else masks[note.column]
        if note is None or mask is None:
            return text
        if mask.drops:
            return None
        # A type name can list values, such as those of an enum.
        return StatementNote(COLUMN_REWRITTEN, note.column).text

    def _masked_schema(self, schema: TableSchema) -> TableSchema:
        masks = self.masks_of(schema.column_types)
        columns = [masked for column in schema.columns if (masked := _column(column, masks[column.name])) is not None]
        if columns == [*schema.columns]:
            return schema
        return TableSchema.of(schema.source, schema.db, schema.schema, schema.table, columns, schema.key_kind)


def _masked(image: Image | None, masks: ColumnMasks, touched: dict[str, Mask]) -> Image | None:
    if image is None or image.keys() <= masks.clear_names:
        return image
    hit = {name: mask for name in image if (mask := masks[name]) is not None}
    if not hit:
        return image
    touched |= hit
    return {
        name: value if mask is None or value is None else mask.value(value)
        for name, value in image.items()
        if (mask := hit.get(name)) is None or not mask.drops
    }


def _leave_names_out(change: RowChange, masks: ColumnMasks, touched: dict[str, Mask]) -> bool:
    """Remove dropped columns from the lists of names. It returns whether any names or values were removed."""
    listed = (*(change.changed or ()), *(change.unavailable or ()))
    dropped = {name for name in listed if (mask := masks[name]) is not None and mask.drops}
    dropped.update(name for name, mask in touched.items() if mask.drops)
    if not dropped:
        return False
    if change.changed is not None:
        change.changed = [name for name in change.changed if name not in dropped]
    if change.unavailable is not None:
        change.unavailable = [name for name in change.unavailable if name not in dropped]
    if change.notes is not None:
        change.notes = [note for note in change.notes if note.partition("=")[2] not in dropped]
    return True


_of_row = re.compile(r"(UPDATE BEFORE )?\$\.").match
"""A path into the message. It is the name in `ext` of a field that was not translated."""


def _leave_members_out(change: RowChange, *, certain: bool) -> bool:
    """Leave out the writer's additional fields, because they could contain parts of the row. Returns whether any fields
    were left out.

    Args:
        certain: it is certain that no column in the table is masked. An untranslated field (`$.key`) may still contain
            masked values.
    """
    kept = {name: text for name, text in (change.ext or {}).items() if not _of_row(name)} if certain else {}
    if len(kept) == len(change.ext or {}):
        return False
    change.ext = kept or None
    return True


def _issues(issues: Iterable[Issue], masks: ColumnMasks, touched: dict[str, Mask]) -> list[Issue] | None:
    """Return the issues. A masked column keeps its issue, but without the value's text."""
    kept: dict[Issue, None] = {}
    for issue in issues:
        mask = masks[issue.col]
        if mask is None:
            kept[issue] = None
            continue
        touched[issue.col] = mask
        if not mask.drops:
            kept[structs.replace(issue, raw=None)] = None
    return [*kept] or None


def _column(column: Column, mask: Mask | None) -> Column | None:
    """Return the column for a schema. The name of the type at the source is removed if it could reveal masked text."""
    if mask is None:
        return column
    if mask.drops:
        return None
    if mask.rule.action in TEXT:
        return structs.replace(column, type="string", native=None, length=None, charset=None)
    # A type name can list values, such as those of an enum.
    return structs.replace(column, nullable=True, native=None)
