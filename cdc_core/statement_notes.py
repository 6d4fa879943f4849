"""Notes of events of kind `schema` that announce changes of existing rows (docs/envelope.md, Statements).

The translator writes them; the sink and the reader act on them. A note concerns the table that its event names; an
event without a table concerns all tables of its `db`, and one without either all tables of its source.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

STATEMENT_NOT_APPLIED = "STATEMENT_NOT_APPLIED"
"""Rows changed, and no event has them."""

TABLE_DROPPED = "TABLE_DROPPED"
"""The table was dropped, with all its rows."""

DEFAULT_FILLED = "DEFAULT_FILLED"
"""`DEFAULT_FILLED=column:type`: a column was added, and every existing row has the value that `after` holds for it."""

COLUMN_REWRITTEN = "COLUMN_REWRITTEN"
"""`COLUMN_REWRITTEN=column`: existing rows have other values in it, and no event has them. Bare: any column."""

COLUMN_RETYPED = "COLUMN_RETYPED"
"""`COLUMN_RETYPED=column:type`: the column has this type of the source now. Existing values changed, unless the type
holds every value of the one before: the statement does not say which that was."""

CASCADE_NOT_LOGGED = "CASCADE_NOT_LOGGED"
"""Foreign keys of the table change its rows when their parents change, and the source does not log that."""

NOTES = (
    STATEMENT_NOT_APPLIED,
    TABLE_DROPPED,
    DEFAULT_FILLED,
    COLUMN_REWRITTEN,
    COLUMN_RETYPED,
    CASCADE_NOT_LOGGED,
)

_TYPED = frozenset({DEFAULT_FILLED, COLUMN_RETYPED})


class StatementNote(Struct, frozen=True):
    """A note of `NOTES`, taken apart. `column` and `type` are None where the note has none."""

    word: str
    column: str | None = None
    type: str | None = None

    @property
    def text(self) -> str:
        """The note in the form that events have."""
        if self.column is None:
            return self.word
        return f"{self.word}={self.column}" if self.type is None else f"{self.word}={self.column}:{self.type}"


def statement_notes(notes: Iterable[str] | None) -> list[StatementNote]:
    """Return the notes of an event that announce changes of existing rows, in their order."""
    return [_taken_apart(note) for note in notes or () if note.partition("=")[0] in NOTES]


def _taken_apart(note: str) -> StatementNote:
    word, separator, rest = note.partition("=")
    if not separator:
        return StatementNote(word)
    if word not in _TYPED:
        return StatementNote(word, rest)
    # No type has a colon outside of quotes but a list of labels; a column may have one, and then the last counts.
    cut = _end_of_column(rest)
    return StatementNote(word, rest[:cut], rest[cut + 1 :])


def _end_of_column(text: str) -> int:
    """Return the place of the colon between column and type: labels of a type are in quotes, after a parenthesis."""
    labels = text.find("('")
    cut = text.rfind(":", 0, labels if labels >= 0 else len(text))
    return cut if cut >= 0 else len(text)
