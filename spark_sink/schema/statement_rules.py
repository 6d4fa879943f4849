"""Statements that change existing rows without events of rows: what becomes of a table (docs/sink/statements.md)."""

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

# Words after which a table differs from its source for certain, whatever its columns.
ROWS_DIFFER = frozenset({STATEMENT_NOT_APPLIED, TABLE_DROPPED, COLUMN_REWRITTEN, CASCADE_NOT_LOGGED})

# These also park a table that is empty or does not exist: no event has the rows that they bring or will change.
CONCERN_NO_ROWS = frozenset({STATEMENT_NOT_APPLIED, CASCADE_NOT_LOGGED})

Drops = Literal["park", "keep", "empty"]


@dataclass(frozen=True)
class StatementRules:
    """The policies; the defaults are those of the settings.

    Args:
        park_statements: rows changed, and no event has them.
        drops: of a table that was dropped.
        park_rewrites: values changed, and no event has them; otherwise rows are marked as incomplete.
        park_cascades: foreign keys change rows, and the source does not log it; otherwise that is a warning.
    """

    park_statements: bool = True
    drops: Drops = "park"
    park_rewrites: bool = False
    park_cascades: bool = False

    def parks(self, word: str) -> Reason | None:
        """Return the reason for which a note of this word parks its table; None where it does not."""
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
        """Return the same for a statement that concerns all tables of a database or a source.

        Nobody can empty or mark all of them at a position, so those policies park as well.
        """
        if word == TABLE_DROPPED:
            return Reason.TABLE_DROPPED if self.drops != "keep" else None
        if word in (COLUMN_REWRITTEN, COLUMN_RETYPED):
            return Reason.ROWS_UNACCOUNTED
        return self.parks(word)


@dataclass
class StatementAnswer:
    """The answer to the statement of one event.

    Args:
        parks: the reason, and the words of the notes that ask for it.
        empties: its table, as a truncate does.
        marks: existing rows as incomplete.
        fills: columns that existing rows lack, by name, each with its canonical type.
        unaccounted: the words of notes after which the table differs from its source, or may.
    """

    parks: Reason | None = None
    empties: bool = False
    marks: bool = False
    fills: dict[str, str] = field(default_factory=dict)
    unaccounted: Counter[str] = field(default_factory=Counter)


def answer_to(
    notes: Iterable[str], filled: Collection[str], rules: StatementRules, known: Sequence[TableSchema]
) -> StatementAnswer:
    """Decide about a statement.

    Args:
        filled: the columns that the image of its event holds.
        known: every schema of the table that was announced.
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
    """Return whether no value changed by the type of a column: it holds that of every schema that has the column.

    The statement does not say which type the column had. A schema that is newer than the statement says nothing either,
    so that a column which was made narrower, and wider again, counts as rewritten.
    """
    natives = [column.native for schema in known for column in schema.columns if column.name == note.column]
    return bool(natives) and all(holds_native(note.type or "", native) for native in natives)
