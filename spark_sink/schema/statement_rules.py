"""Decide how a table reacts to statements that change rows without row events (docs/sink/statements.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cdc_core.envelope import TableSchema
from cdc_core.statement_notes import (
    CASCADE_NOT_LOGGED,
    COLUMN_RETYPED,
    COLUMN_REWRITTEN,
    DEFAULT_FILLED,
    STATEMENT_NOT_APPLIED,
    TABLE_DROPPED,
    StatementNote,
    statement_notes,
)
from spark_sink.errors import Reason
from spark_sink.schema.native_types import holds_native

# Notes after which a table certainly differs from its source, regardless of its columns.
ROWS_DIFFER = frozenset({STATEMENT_NOT_APPLIED, TABLE_DROPPED, COLUMN_REWRITTEN, CASCADE_NOT_LOGGED})

# These notes also park a table that is empty or does not exist, because no event contains the rows that the statements
# add or will change.
CONCERN_NO_ROWS = frozenset({STATEMENT_NOT_APPLIED, CASCADE_NOT_LOGGED})

Drops = Literal["park", "keep", "empty"]


@dataclass(frozen=True)
class StatementRules:
    """The configured policies. The defaults are those of the settings.

    Args:
        park_statements: whether to park a table whose rows were changed without events.
        drops: the policy for a dropped table.
        park_rewrites: whether to park a table whose values were changed without events. Otherwise, its rows are marked
            as incomplete.
        park_cascades: whether to park a table if foreign keys change its rows, and the source does not log these
            changes. Otherwise, a warning is logged.
    """

    park_statements: bool = True
    drops: Drops = "park"
    park_rewrites: bool = False
    park_cascades: bool = False

    def parks(self, word: str) -> Reason | None:
        """Return why this note parks its table, or None if it does not."""
        if word == TABLE_DROPPED:
            return Reason.TABLE_DROPPED if self.drops == "park" else None
        parked = {
            STATEMENT_NOT_APPLIED: self.park_statements,
            COLUMN_REWRITTEN: self.park_rewrites,
            COLUMN_RETYPED: self.park_rewrites,
            CASCADE_NOT_LOGGED: self.park_cascades,
        }
        return Reason.ROWS_UNACCOUNTED if parked.get(word) else None

    def parks_all(self, word: str) -> Reason | None:
        """Return why this note parks all tables in a database or source, or None if it does not.

        No single position fits all of these tables. Policies that would empty or mark one table therefore park all of
        them.
        """
        if word == TABLE_DROPPED:
            return Reason.TABLE_DROPPED if self.drops != "keep" else None
        if word in (COLUMN_REWRITTEN, COLUMN_RETYPED):
            return Reason.ROWS_UNACCOUNTED
        return self.parks(word)


@dataclass
class StatementAnswer:
    """The response to one event's statement.

    Args:
        parks: the reason for parking the table, and the notes that require it.
        empties: whether to empty the table, like a truncate.
        marks: whether to mark existing rows as incomplete.
        fills: the columns that existing rows lack, by name, each with its canonical type.
        unaccounted: the notes after which the table may differ from its source.
    """

    parks: Reason | None = None
    empties: bool = False
    marks: bool = False
    fills: dict[str, str] = field(default_factory=dict)
    unaccounted: Counter[str] = field(default_factory=Counter)


def answer_to(
    notes: Iterable[str], filled: Collection[str], rules: StatementRules, known: Sequence[TableSchema]
) -> StatementAnswer:
    """Decide how to respond to a statement.

    Args:
        filled: the columns in its event's image.
        known: all schemas announced for the table.
    """
    found = StatementAnswer()
    for note in statement_notes(notes):
        if note.word == DEFAULT_FILLED and note.column in filled and note.type is not None:
            found.fills[note.column or ""] = note.type
            continue
        if note.word == COLUMN_RETYPED and is_wider(note, known):
            continue
        reason = rules.parks(COLUMN_REWRITTEN if note.word == DEFAULT_FILLED else note.word)
        found.parks = found.parks or reason
        empties = note.word == TABLE_DROPPED and rules.drops == "empty"
        found.empties |= empties
        found.marks |= reason is None and note.word in (COLUMN_REWRITTEN, COLUMN_RETYPED, DEFAULT_FILLED)
        if not empties:
            found.unaccounted[note.word] += 1
    return found


def is_wider(note: StatementNote, known: Sequence[TableSchema]) -> bool:
    """Return whether the new type kept all values. In every schema that has the column, the new type must be able to
    store the column's type.

    Neither the statement nor a schema that is newer than it contains the previous type. A column that was made narrower
    and then wider again therefore counts as rewritten.
    """
    natives = [column.native for schema in known for column in schema.columns if column.name == note.column]
    return bool(natives) and all(holds_native(note.type or "", native) for native in natives)
