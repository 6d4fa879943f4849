"""Define the notes in `schema` events that report changes to existing rows (docs/envelope/statements.md).

The translator writes these notes, and the sink and the reader act on them. A note applies to its event's table. If the
event has no table, the note applies to all tables in the event's `db`. If the event has no `db` either, the note
applies to all tables in its source.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

STATEMENT_NOT_APPLIED = "STATEMENT_NOT_APPLIED"
"""Rows changed, but no event contains the changes."""

TABLE_DROPPED = "TABLE_DROPPED"
"""The table was dropped with all its rows."""

DEFAULT_FILLED = "DEFAULT_FILLED"
"""`DEFAULT_FILLED=column:type`: a column was added, and in every existing row, it has the value from `after`."""

COLUMN_REWRITTEN = "COLUMN_REWRITTEN"
"""`COLUMN_REWRITTEN=column`: the column has new values in existing rows, but no event contains them. Without a column,
any column may be affected.
"""

COLUMN_RETYPED = "COLUMN_RETYPED"
"""`COLUMN_RETYPED=column:type`: the column now has this source type. Existing values have changed, unless the new type
can hold every value of the previous one. The note does not include the previous type.
"""

CASCADE_NOT_LOGGED = "CASCADE_NOT_LOGGED"
"""Foreign keys change rows of the table when their parents change, and the source does not log these changes."""

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
    """A parsed note with a name from `NOTES`. `column` and `type` are None if the note lacks them."""

    word: str
    column: str | None = None
    type: str | None = None

    @property
    def text(self) -> str:
        """The note as text, in the format that events use."""
        if self.column is None:
            return self.word
        return f"{self.word}={self.column}" if self.type is None else f"{self.word}={self.column}:{self.type}"


def statement_notes(notes: Iterable[str] | None) -> list[StatementNote]:
    """Return the notes in an event that report changes to existing rows, in order."""
    return [_taken_apart(note) for note in notes or () if note.partition("=")[0] in NOTES]


def _taken_apart(note: str) -> StatementNote:
    word, separator, rest = note.partition("=")
    if not separator:
        return StatementNote(word)
    if word not in _TYPED:
        return StatementNote(word, rest)
    # Types contain no unquoted colon except in label lists. Column names can contain colons, so the last colon outside
    # such a list is the separator.
    cut = _end_of_column(rest)
    return StatementNote(word, rest[:cut], rest[cut + 1 :])


def _end_of_column(text: str) -> int:
    """Return the index of the colon between column and type. Labels in a type are quoted, and follow a parenthesis."""
    labels = text.find("('")
    cut = text.rfind(":", 0, labels if labels >= 0 else len(text))
    return cut if cut >= 0 else len(text)
