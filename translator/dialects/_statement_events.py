"""Convert the effects of a statement to events: notes for each table, and the values in added columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct, structs

from cdc_core.statement_notes import COLUMN_REWRITTEN, DEFAULT_FILLED, StatementNote
from translator.dialects._ddl_effects import Effect, Literal, SqlType
from translator.message import Image, OtherChange, Scalar, TableName
from translator.values import Assumed, Converter, Unrepresentable


class ConcernedTables(Struct, frozen=True):
    """An event's table. If `table` is None, it stands for all tables in `db`. If `db` is also None, it stands for all
    tables in the source.
    """

    table: TableName | None
    db: str | None


class Filled(Struct, frozen=True):
    """The value that existing rows have in a column that was added."""

    type: str
    """The canonical type."""

    value: Scalar


Fill: TypeAlias = Callable[[SqlType, Literal], Filled | None]
"""Returns a default in canonical form, or None if the value is uncertain."""


def announced(
    change: OtherChange, effects: Iterable[Effect], target_of: Callable[[Effect], ConcernedTables], fill: Fill
) -> list[OtherChange]:
    """Return one event for each table whose rows the statement changes, in text order.

    Args:
        change: the event without effects. If the statement and the message name different tables, the task may have
            renamed the table. In that case, the message's table is also affected.
    """
    found: dict[ConcernedTables, list[Effect]] = {}
    for effect in effects:
        found.setdefault(target_of(effect), []).append(effect)
    if not found:
        return [change]
    first = next(iter(found.values()))
    if change.table is not None and all(not _covers(target, change.table) for target in found):
        found[ConcernedTables(change.table, change.table.db)] = first
    return [_of(change, target, here, fill) for target, here in found.items()]


def _covers(target: ConcernedTables, table: TableName) -> bool:
    return target.table == table or (target.table is None and target.db in (None, table.db))


def _of(change: OtherChange, target: ConcernedTables, effects: Sequence[Effect], fill: Fill) -> OtherChange:
    notes: dict[str, None] = {}
    after: Image = {}
    for effect in effects:
        note = StatementNote(effect.note, effect.column, effect.type.text if effect.type is not None else None)
        if effect.note == DEFAULT_FILLED and effect.column is not None:
            filled = _filled(effect, fill) if target.table is not None else None
            if filled is None:
                note = StatementNote(COLUMN_REWRITTEN, effect.column)
            else:
                after[effect.column] = filled.value
                note = StatementNote(DEFAULT_FILLED, effect.column, filled.type)
        notes[note.text] = None
    # The events for a statement share fields, which nobody changes in place.
    return structs.replace(
        change, table=target.table, db=target.db, notes=[*notes, *(change.notes or ())], after=after or None
    )


def _filled(effect: Effect, fill: Fill) -> Filled | None:
    if effect.type is None or effect.literal is None:
        return None
    return fill(effect.type, effect.literal)


def constant(type_: str, convert: Converter, text: str) -> Filled | None:
    """Return a constant's text as a value with a canonical type, or None if the type cannot hold the value."""
    try:
        value = convert(text)
    except (Assumed, Unrepresentable, ValueError):
        return None
    return Filled(type_, value)
