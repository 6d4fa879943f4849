"""Determine how a SQL statement changes existing rows without row events. All dialects share this classification.

It looks at words instead of using a parser, because `ALTER TABLE … DROP PARTITION` removes rows however it is spelled.
If the words leave doubt, it assumes that values may have changed. Other statements have no effect. An index, a comment
or a storage option does not change rows. According to the manuals, some operations on partitions keep every row. These
are COALESCE, REORGANIZE, REBUILD and REMOVE PARTITIONING in MySQL, and SPLIT, MERGE and MOVE in Oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from cdc_core.statement_notes import (
    CASCADE_NOT_LOGGED,
    COLUMN_RETYPED,
    COLUMN_REWRITTEN,
    DEFAULT_FILLED,
    STATEMENT_NOT_APPLIED,
    TABLE_DROPPED,
)
from translator.dialects._ddl import MAX_CHARS, Name
from translator.dialects._ddl_words import (
    FOLDS,
    MYSQL,
    NAME,
    NUMBER,
    ODD,
    ORACLE,
    POSTGRES,
    STRING,
    TSQL,
    WORD,
    Token,
    split,
    words_of,
)


class SqlType(Struct, frozen=True):
    """A type as the statement spells it: words in lower case, labels unchanged. `charset` is the character set in the
    text.
    """

    text: str
    charset: str | None = None


class Literal(Struct, frozen=True):
    """A constant. `kind` is `string`, `number` or `boolean` (text `1` or `0`), or `implicit` for MySQL's own
    default.
    """

    kind: str
    text: str


class Effect(Struct, frozen=True):
    """The effect of a statement on a table's rows.

    Args:
        note: one of `cdc_core.statement_notes.NOTES`. For DEFAULT_FILLED, `type` and `literal` are set.
        table: the table's name as written, with unquoted names folded as in the source. None means all tables in `db`.
        db: the table's database. If `table` is also None, None stands for all tables that the message may be about.
    """

    note: str
    table: Name | None = None
    db: str | None = None
    column: str | None = None
    type: SqlType | None = None
    literal: Literal | None = None


_CACHED = 256
_LONGEST_DOTTED = 4


@lru_cache(maxsize=_CACHED)
def effects_of(sql: str, grammar: str) -> tuple[Effect, ...]:
    """Return the effects of SQL text with one or more statements, in order and without duplicates. Never raises.

    Args:
        grammar: one of the grammars in `_ddl_words`.
    """
    found: list[Effect] = []
    for words in split(words_of(sql[:MAX_CHARS], grammar), ";"):
        if _is_code(words):
            break
        found += _Statement(words, grammar).effects()
        if len(sql) > MAX_CHARS and words[0].is_word("ALTER") and found:
            # The rest of the text is not read.
            found.append(Effect(COLUMN_REWRITTEN, found[-1].table))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=_CACHED)
def rows_changed_by(sql: str, grammar: str) -> tuple[Effect, ...]:
    """Return the effects of an INSERT, UPDATE, DELETE or REPLACE without row events. Never raises.

    If an UPDATE or DELETE names several tables, the names alone do not show which of them it changes. Its effect then
    names no table, because any table may have changed.
    """
    words = split(words_of(sql[:MAX_CHARS], grammar), ";")
    names = {_Statement(part, grammar).changed_table() for part in words} or {None}
    if None in names:
        return (Effect(STATEMENT_NOT_APPLIED),)
    return tuple(Effect(STATEMENT_NOT_APPLIED, name) for name in sorted(name for name in names if name))


def is_row_statement(sql: str, grammar: str) -> bool:
    """Return whether SQL text begins like a statement that changes individual rows."""
    words = words_of(sql[:MAX_CHARS], grammar)
    return bool(words) and words[0].is_word("INSERT", "UPDATE", "DELETE", "REPLACE")


def _is_code(words: Sequence[Token]) -> bool:
    """Return whether these words begin a procedure, a trigger or a block. Such code runs later, or elsewhere."""
    head = [token.text.upper() for token in words[:8] if token.kind == WORD]
    if head[:1] in (["BEGIN"], ["DECLARE"]):
        return head not in (["BEGIN"], ["BEGIN", "WORK"], ["BEGIN", "TRANSACTION"])
    return head[:1] == ["CREATE"] and not _CODE.isdisjoint(head[1:8]) and "TABLE" not in head[1:3]


_CODE = frozenset({"PROCEDURE", "PROC", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})


class _Statement:
    """A reader that steps through the words of a statement from left to right."""

    def __init__(self, words: Sequence[Token], grammar: str) -> None:
        self._words = words
        self._grammar = grammar
        self._at = 0

    def effects(self) -> list[Effect]:
        """Return the statement's effects on existing rows."""
        for begin, rule in _RULES.items():
            if self._accept(*begin.split()):
                return [*rule(self)]
        return []

    def changed_table(self) -> Name | None:
        """Return the only table whose rows change, or None if it cannot be determined."""
        if self._accept("INSERT") or self._accept("REPLACE"):
            self._skip("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "OVERWRITE", "INTO")
            return self._name()
        if self._accept("DELETE"):
            self._skip("LOW_PRIORITY", "QUICK", "IGNORE")
            name = self._name() if self._accept("FROM") else None
            return name if not self._peek().is_mark(",") and not self._peek().is_word("USING", *_JOINS) else None
        if not self._accept("UPDATE"):
            return None
        self._skip("LOW_PRIORITY", "IGNORE", "ONLY")
        name = self._name()
        while not self._peek().is_word("SET"):
            token = self._next()
            if token is _END or token.is_mark(",") or token.is_word(*_JOINS):
                return None
        return name

    # -- rules, by how a statement begins

    def _truncate(self) -> Iterator[Effect]:
        self._skip("TABLE", "ONLY")
        rest = self._words[self._at :]
        if any(token.is_word("CASCADE") for token in rest):
            # Child tables are also emptied, and their names are unknown.
            yield Effect(STATEMENT_NOT_APPLIED)
            return
        for part in split(rest, ","):
            yield Effect(STATEMENT_NOT_APPLIED, _Statement(part, self._grammar)._name_behind("ONLY"))

    def _drop_tables(self) -> Iterator[Effect]:
        self._skip("IF", "EXISTS")
        for part in split(self._words[self._at :], ","):
            name = _Statement(part, self._grammar)._name()
            if not _is_temporary(name):
                yield Effect(TABLE_DROPPED, name)

    def _drop_database(self) -> Iterator[Effect]:
        self._skip("IF", "EXISTS")
        name = self._name()
        # For a source with schemas inside databases, an event's `db` is the database.
        levels = self._grammar in (POSTGRES, TSQL) and self._words[1].is_word("SCHEMA")
        yield Effect(TABLE_DROPPED, db=name[-1] if name and not levels else None)

    def _rename_tables(self) -> Iterator[Effect]:
        for part in split(self._words[self._at :], ","):
            pair = _Statement(part, self._grammar)
            pair._skip("IF", "EXISTS")
            yield Effect(STATEMENT_NOT_APPLIED, pair._name())
            while not pair._peek().is_word("TO") and pair._next() is not _END:
                pass
            if pair._accept("TO"):
                yield Effect(STATEMENT_NOT_APPLIED, pair._name())

    def _rename_by_procedure(self) -> Iterator[Effect]:
        """`sp_rename 'schema.table', 'new'`, or for a column: `sp_rename 'table.column', 'new', 'COLUMN'`."""
        parts = split(self._words[self._at :], ",")
        texts = [part[-1].text for part in parts if part[-1].kind in (STRING, NAME, WORD)]
        if len(texts) < 2 or (len(texts) > 2 and texts[2].upper() == "INDEX"):
            return
        names = tuple(part.strip('[]"') for part in texts[0].split("."))
        if len(texts) > 2 and texts[2].upper() == "COLUMN":
            yield Effect(COLUMN_REWRITTEN, names[:-1] or None, column=texts[1])
            return
        yield Effect(STATEMENT_NOT_APPLIED, names)
        yield Effect(STATEMENT_NOT_APPLIED, (*names[:-1], texts[1]))

    def _flashback(self) -> Iterator[Effect]:
        for part in split(self._words[self._at :], ","):
            yield Effect(STATEMENT_NOT_APPLIED, _Statement(part, self._grammar)._name())

    def _create(self) -> Iterator[Effect]:
        replaces = self._accept("OR", "REPLACE")
        if not self._accept("TABLE"):
            return
        self._skip("IF", "NOT", "EXISTS")
        name = self._name()
        if _is_temporary(name):
            return
        if replaces:
            yield Effect(TABLE_DROPPED, name)
        if self._cascades(self._words[self._at :]):
            yield Effect(CASCADE_NOT_LOGGED, name)

    def _alter(self) -> Iterator[Effect]:
        table = self._altered()
        if table is None:
            return
        for action in _actions(self._words[self._at :]):
            part = _Statement(action, self._grammar)
            if self._cascades(action):
                yield Effect(CASCADE_NOT_LOGGED, table)
            for begin, rule in _ACTIONS.items():
                if part._accept(*begin.split()):
                    yield from rule(part, table)
                    break

    def _alter_ignore(self) -> Iterator[Effect]:
        """Rows that violate a new unique key are deleted."""
        effects = [*self._alter()]
        yield from effects
        self._at = 3
        yield Effect(STATEMENT_NOT_APPLIED, self._name())

    def _altered(self) -> Name | None:
        self._skip("IF", "EXISTS", "ONLY")
        name = self._name()
        if self._peek().is_mark("*"):
            self._next()
        if self._accept("WAIT"):
            self._next()
        self._accept("NOWAIT")
        if self._accept("WITH"):  # SQL Server: CHECK or NOCHECK
            self._next()
        return None if _is_temporary(name) else name

    # -- actions of ALTER TABLE

    def _rows_gone(self, table: Name) -> Iterator[Effect]:
        yield Effect(STATEMENT_NOT_APPLIED, table)

    def _rows_exchanged(self, table: Name) -> Iterator[Effect]:
        """Rows move between two tables. The other table follows WITH TABLE, TO TABLE or TO."""
        yield Effect(STATEMENT_NOT_APPLIED, table)
        while (token := self._next()) is not _END:
            if token.is_word("TABLE") or (token.is_word("TO") and not self._peek().is_word("TABLE", "PARTITION")):
                yield Effect(STATEMENT_NOT_APPLIED, self._name())
                return

    def _attached(self, table: Name) -> Iterator[Effect]:
        """In PostgreSQL, the partition is a table."""
        yield Effect(STATEMENT_NOT_APPLIED, table)
        yield Effect(STATEMENT_NOT_APPLIED, self._name())

    def _renamed(self, table: Name) -> Iterator[Effect]:
        if self._accept("COLUMN"):
            self._skip("IF", "EXISTS")
            yield from self._renamed_column(table)
        elif self._accept("TO") or self._accept("AS") or self._peek().is_mark("="):
            if self._peek().is_mark("="):
                self._next()
            yield from self._renamed_table(table)
        elif not self._peek().is_word("INDEX", "KEY", "CONSTRAINT", "PARTITION", "SUBPARTITION", "ATTRIBUTE"):
            if len(self._words) > self._at + 1 and self._words[self._at + 1].is_word("TO"):
                yield from self._renamed_column(table)  # PostgreSQL: COLUMN is optional
            else:
                yield from self._renamed_table(table)  # MySQL: TO is optional

    def _renamed_column(self, table: Name) -> Iterator[Effect]:
        self._next()
        if self._accept("TO"):
            yield Effect(COLUMN_REWRITTEN, table, column=self._part())

    def _renamed_table(self, table: Name) -> Iterator[Effect]:
        yield Effect(STATEMENT_NOT_APPLIED, table)
        new = self._name()
        if new is not None:
            # The new name is in the old name's schema.
            same_schema = self._grammar != MYSQL and len(new) == 1
            yield Effect(STATEMENT_NOT_APPLIED, (*table[:-1], *new) if same_schema else new)

    def _moved(self, table: Name) -> Iterator[Effect]:
        yield Effect(STATEMENT_NOT_APPLIED, table)
        if (schema := self._part()) is not None:
            yield Effect(STATEMENT_NOT_APPLIED, (schema, table[-1]))

    def _converted(self, table: Name) -> Iterator[Effect]:
        """Every text value in the table is converted. Converting to utf8mb4 is lossless."""
        self._skip("SET", "=")
        if self._peek().text.lower() not in _LOSSLESS_CHARSETS:
            yield Effect(COLUMN_REWRITTEN, table)

    def _added(self, table: Name) -> Iterator[Effect]:
        self._accept("COLUMN")
        self._skip("IF", "NOT", "EXISTS")
        if self._peek().is_mark("("):
            for part in split(self._inside(), ","):
                yield from _Statement(part, self._grammar)._added_column(table)
        else:
            yield from self._added_column(table)

    def _added_column(self, table: Name) -> Iterator[Effect]:
        if self._peek().is_word(*_NO_COLUMNS):
            return
        column = self._part()
        if column is None:
            return
        type_ = None if self._peek().is_word("AS") else self._type()
        if type_ is None:
            yield Effect(COLUMN_REWRITTEN, table, column=column)
            return
        rest = _Rest(self._words[self._at :], self._grammar)
        if rest.computed or type_.text.startswith(_SEQUENCES):
            yield Effect(COLUMN_REWRITTEN, table, column=column)
        elif rest.default is None:
            if self._grammar == MYSQL and rest.not_null:
                yield Effect(DEFAULT_FILLED, table, column=column, type=type_, literal=Literal("implicit", ""))
        elif self._grammar == TSQL and not rest.not_null and not rest.with_values:
            return  # existing rows have NULL
        elif (literal := _literal(rest.default, self._grammar)) is None:
            yield Effect(COLUMN_REWRITTEN, table, column=column)
        elif literal.kind != "null":
            yield Effect(DEFAULT_FILLED, table, column=column, type=type_, literal=literal)

    def _modified(self, table: Name) -> Iterator[Effect]:
        self._accept("COLUMN")
        self._skip("IF", "EXISTS")
        if self._peek().is_mark("("):
            for part in split(self._inside(), ","):
                yield from _Statement(part, self._grammar)._modified_column(table)
        else:
            yield from self._modified_column(table)

    def _modified_column(self, table: Name) -> Iterator[Effect]:
        if self._peek().is_word(*_NO_COLUMNS, "LOB", "NESTED", "VARRAY", "OPAQUE"):
            return
        column = self._part()
        if self._peek().is_word(*_NO_TYPES) or self._peek() is _END:
            return
        yield from self._retyped(table, column)

    def _changed(self, table: Name) -> Iterator[Effect]:
        """In MySQL, one clause contains both the new name and the type."""
        self._accept("COLUMN")
        self._skip("IF", "EXISTS")
        old, new = self._part(), self._part()
        if old is not None and new is not None and old.lower() != new.lower():
            yield Effect(COLUMN_REWRITTEN, table, column=new)
        else:
            yield from self._retyped(table, new)

    def _altered_column(self, table: Name) -> Iterator[Effect]:
        self._accept("COLUMN")
        self._skip("IF", "EXISTS")
        if self._peek().is_word("INDEX", "CHECK", "CONSTRAINT"):
            return
        column = self._part()
        if self._accept("SET", "EXPRESSION"):
            yield Effect(COLUMN_REWRITTEN, table, column=column)
        elif self._accept("TYPE") or self._accept("SET", "DATA", "TYPE"):
            if any(token.is_word("USING") for token in self._words):
                yield Effect(COLUMN_REWRITTEN, table, column=column)
            else:
                yield from self._retyped(table, column)
        elif self._grammar == TSQL and not self._peek().is_word("ADD", "DROP", "SET"):
            yield from self._retyped(table, column)

    def _retyped(self, table: Name, column: str | None) -> Iterator[Effect]:
        if column is None:
            return
        type_ = self._type()
        rest = _Rest(self._words[self._at :], self._grammar)
        if type_ is None or rest.computed_from_others or (type_.charset or "utf8mb4") not in _LOSSLESS_CHARSETS:
            yield Effect(COLUMN_REWRITTEN, table, column=column)
        elif self._grammar == ORACLE and not type_.text.startswith(_PADDED):
            return  # Oracle rejects modifications that change values, but pads fixed-length text
        else:
            yield Effect(COLUMN_RETYPED, table, column=column, type=type_)

    def _cascades(self, words: Sequence[Token]) -> bool:
        """Return whether a MySQL foreign key changes rows together with their parent rows."""
        if self._grammar != MYSQL or not any(token.is_word("REFERENCES") for token in words):
            return False
        texts = [token.text.upper() if token.kind == WORD else "" for token in words]
        return any(
            texts[at] == "ON"
            and texts[at + 1 : at + 2] in (["DELETE"], ["UPDATE"])
            and (
                texts[at + 2 : at + 3] == ["CASCADE"] or texts[at + 2 : at + 4] in (["SET", "NULL"], ["SET", "DEFAULT"])
            )
            for at in range(len(texts))
        )

    # -- words

    def _peek(self) -> Token:
        return self._words[self._at] if self._at < len(self._words) else _END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, *words: str) -> bool:
        """Skip these words if they are the next words."""
        ahead = self._words[self._at : self._at + len(words)]
        if len(ahead) < len(words) or not all(token.is_word(word) for token, word in zip(ahead, words, strict=True)):
            return False
        self._at += len(words)
        return True

    def _skip(self, *words: str) -> None:
        while self._peek().is_word(*words) or (self._peek().is_mark("=") and "=" in words):
            self._next()

    def _part(self) -> str | None:
        """Return the next name, or None."""
        token = self._peek()
        if token.kind not in (WORD, NAME):
            return None
        self._next()
        fold = FOLDS.get(self._grammar)
        return fold(token.text) if fold is not None and token.kind == WORD else token.text

    def _name(self) -> Name | None:
        parts: list[str] = []
        while (part := self._part()) is not None:
            parts.append(part)
            if not self._peek().is_mark("."):
                break
            self._next()
        return tuple(parts) if parts and len(parts) <= _LONGEST_DOTTED else None

    def _name_behind(self, *words: str) -> Name | None:
        self._skip(*words)
        return self._name()

    def _inside(self) -> list[Token]:
        """Return the tokens inside the parentheses that come next."""
        depth, found = 0, []
        while (token := self._next()) is not _END:
            depth += token.is_mark("(") - token.is_mark(")")
            if depth == 0:
                break
            found.append(token)
        return found[1:]

    def _type(self) -> SqlType | None:
        """Return a column's type with its modifiers, or None."""
        token = self._peek()
        if token.kind != WORD and not (token.kind == NAME and self._grammar == TSQL):
            return None
        text = self._next().text.lower()
        while self._peek().is_mark(".") and self._grammar in (TSQL, POSTGRES):
            self._next()
            text = self._next().text.lower()
        while self._peek().is_word("VARYING", "PRECISION", "RAW", "VARCHAR", "CHAR", "CHARACTER") and not (
            self._peek().is_word("CHARACTER") and self._words[self._at + 1 : self._at + 2] == [Token(WORD, "SET")]
        ):
            if self._is_charset():
                break
            text += f" {self._next().text.lower()}"
        if self._peek().is_mark("("):
            text += f"({_arguments(self._inside())})"
        charset = None
        while True:
            if self._is_charset():
                self._next()
                self._accept("SET")
                charset = self._next().text.lower()
            elif self._accept("COLLATE"):
                self._next()
            elif self._peek().is_word("UNSIGNED", "ZEROFILL", "BYTE", "WITH", "WITHOUT", "LOCAL", "TIME", "ZONE"):
                if self._peek().is_word("WITH") and self._words[self._at + 1 : self._at + 2] == [Token(WORD, "VALUES")]:
                    break
                text += f" {self._next().text.lower()}"
            elif self._peek().is_word("SIGNED", "BINARY", "ASCII", "UNICODE"):
                self._next()
            elif self._peek().is_mark("["):
                text += self._next().text + self._next().text
            else:
                return SqlType(text, charset)
        return SqlType(text, charset)

    def _is_charset(self) -> bool:
        after = self._words[self._at + 1] if self._at + 1 < len(self._words) else _END
        return self._peek().is_word("CHARSET") or (self._peek().is_word("CHARACTER", "CHAR") and after.is_word("SET"))


_END = Token(ODD, "")
_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "STRAIGHT_JOIN", "NATURAL", "FROM")
_LOSSLESS_CHARSETS = frozenset({"utf8mb4", "default"})
_SEQUENCES = ("serial", "bigserial", "smallserial", "rowversion", "timestamp with local")
_PADDED = ("char", "nchar", "character(", "national char", "timestamp", "date")

_NO_COLUMNS = (
    *("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION"),
    *("SUBPARTITION", "PERIOD", "SYSTEM", "SUPPLEMENTAL", "DEFAULT", "OVERFLOW", "VALUES"),
)
"""Words after ADD or MODIFY that do not begin a column definition."""

_NO_TYPES = (
    *("NULL", "NOT", "DEFAULT", "VISIBLE", "INVISIBLE", "CONSTRAINT", "ENABLE", "DISABLE", "DROP", "ENCRYPT"),
    *("DECRYPT", "PRIMARY", "UNIQUE", "CHECK", "COMMENT", "SUBSTITUTABLE"),
)
"""Words with which Oracle modifies a column without changing its type."""


def _is_temporary(name: Name | None) -> bool:
    """SQL Server marks temporary tables by their names."""
    return name is not None and name[-1].startswith("#")


def _actions(words: Sequence[Token]) -> Iterator[list[Token]]:
    """Split ALTER TABLE into its actions. Oracle separates them without commas."""
    for part in split(words, ","):
        depth, begin = 0, 0
        for at, token in enumerate(part):
            depth += token.is_mark("(") - token.is_mark(")")
            behind = at > begin and depth == 0 and part[at - 1].is_mark(")")
            if behind and token.is_word("ADD", "MODIFY", "DROP"):
                yield part[begin:at]
                begin = at
        yield part[begin:]


def _arguments(words: Sequence[Token]) -> str:
    return "".join("'" + token.text.replace("'", "''") + "'" if token.kind == STRING else token.text for token in words)


class _Rest:
    """Parse what follows the type in a column definition: whether values are computed, whether NULL is allowed, and the
    default.
    """

    def __init__(self, words: Sequence[Token], grammar: str) -> None:
        depth, self.default = 0, None
        self.not_null = self.with_values = self.computed = self.computed_from_others = False
        for at, token in enumerate(words):
            after = words[at + 1] if at + 1 < len(words) else _END
            if depth == 0:
                # If DEFAULT could occur twice, as with MySQL's ON UPDATE …, the column's own default comes first.
                if token.is_word("DEFAULT") and self.default is None and not _follows(words, at, "BY"):
                    self.default = _expression(words[at + 1 :])
                self.not_null |= token.is_word("NOT") and after.is_word("NULL")
                self.not_null |= token.is_word("PRIMARY") and after.is_word("KEY")
                self.with_values |= token.is_word("WITH") and after.is_word("VALUES")
                self.computed |= token.is_word("AUTO_INCREMENT", "IDENTITY", "GENERATED")
                computed = token.is_word("AS") and (after.is_mark("(") or after.is_word("IDENTITY"))
                self.computed |= computed
                self.computed_from_others |= token.is_word("AS") and after.is_mark("(")
            depth += token.is_mark("(") - token.is_mark(")")


def _follows(words: Sequence[Token], at: int, word: str) -> bool:
    return at > 0 and words[at - 1].is_word(word)


_ATTRIBUTES = (
    *("NOT", "NULL", "PRIMARY", "UNIQUE", "KEY", "COMMENT", "COLLATE", "AFTER", "FIRST", "ON", "REFERENCES", "CHECK"),
    *("CONSTRAINT", "COLUMN_FORMAT", "STORAGE", "VISIBLE", "INVISIBLE", "ENABLE", "DISABLE", "WITH", "ENGINE"),
    *("ALGORITHM", "LOCK", "AUTO_INCREMENT", "FOR", "SPARSE", "ENCRYPT", "COMPRESSED", "WITHOUT"),
)
"""Keywords that mark the end of a default."""


def _expression(words: Sequence[Token]) -> list[Token]:
    """Return the tokens that form a default."""
    found: list[Token] = []
    depth = 0
    if len(words) > 2 and words[0].is_word("ON") and words[1].is_word("NULL"):  # Oracle: DEFAULT ON NULL value
        words = words[2:]
    for token in words:
        if depth == 0 and not found and token.is_word("NULL"):
            return [token]
        if depth == 0 and token.is_word(*_ATTRIBUTES):
            break
        depth += token.is_mark("(") - token.is_mark(")")
        found.append(token)
    return found


def _literal(words: Sequence[Token], grammar: str) -> Literal | None:
    """Return the default's constant, or None for an expression."""
    tokens = [*words]
    while len(tokens) > 2 and tokens[0].is_mark("(") and tokens[-1].is_mark(")"):
        tokens = tokens[1:-1]
    sign = ""
    if len(tokens) == 2 and tokens[0].kind == "mark" and tokens[0].text in "+-" and tokens[1].kind == NUMBER:
        sign, tokens = tokens[0].text.replace("+", ""), tokens[1:]
    if len(tokens) == 2 and tokens[0].is_word("N") and tokens[1].kind == STRING:
        tokens = tokens[1:]
    if len(tokens) != 1:
        return None
    (token,) = tokens
    if token.kind == STRING or (token.kind == NAME and grammar == MYSQL):
        empty_is_null = grammar == ORACLE and not token.text
        return Literal("null", "") if empty_is_null else Literal("string", token.text)
    if token.kind == NUMBER:
        return Literal("number", sign + token.text)
    if token.is_word("TRUE", "FALSE"):
        return Literal("boolean", "1" if token.is_word("TRUE") else "0")
    return Literal("null", "") if token.is_word("NULL") else None


_Rule: TypeAlias = Callable[[_Statement], Iterator[Effect]]
_Action: TypeAlias = Callable[[_Statement, Name], Iterator[Effect]]

_RULES: Mapping[str, _Rule] = {
    "TRUNCATE": _Statement._truncate,
    "DROP TABLE": _Statement._drop_tables,
    "DROP TABLES": _Statement._drop_tables,
    "DROP FOREIGN TABLE": _Statement._drop_tables,
    "DROP DATABASE": _Statement._drop_database,
    "DROP SCHEMA": _Statement._drop_database,
    "DROP USER": _Statement._drop_database,
    "RENAME TABLE": _Statement._rename_tables,
    "RENAME TABLES": _Statement._rename_tables,
    "RENAME USER": lambda _: iter(()),
    "RENAME": _Statement._rename_tables,
    "EXEC SP_RENAME": _Statement._rename_by_procedure,
    "EXECUTE SP_RENAME": _Statement._rename_by_procedure,
    "SP_RENAME": _Statement._rename_by_procedure,
    "FLASHBACK TABLE": _Statement._flashback,
    "CREATE": _Statement._create,
    "ALTER TABLE": _Statement._alter,
    "ALTER ONLINE TABLE": _Statement._alter,
    "ALTER OFFLINE TABLE": _Statement._alter,
    "ALTER IGNORE TABLE": _Statement._alter_ignore,
    "ALTER FOREIGN TABLE": _Statement._alter,
}
"""The rules, keyed by how a statement begins. The first match applies."""

_ACTIONS: Mapping[str, _Action] = {
    "DROP PARTITION": _Statement._rows_gone,
    "DROP SUBPARTITION": _Statement._rows_gone,
    "TRUNCATE PARTITION": _Statement._rows_gone,
    "TRUNCATE SUBPARTITION": _Statement._rows_gone,
    "DROP PARTITIONS": _Statement._rows_gone,
    "TRUNCATE PARTITIONS": _Statement._rows_gone,
    "TRUNCATE SUBPARTITIONS": _Statement._rows_gone,
    "EXCHANGE PARTITION": _Statement._rows_exchanged,
    "EXCHANGE SUBPARTITION": _Statement._rows_exchanged,
    "SWITCH": _Statement._rows_exchanged,
    "CONVERT PARTITION": _Statement._rows_exchanged,
    "CONVERT TABLE": _Statement._attached,
    "ATTACH PARTITION": _Statement._attached,
    "DETACH PARTITION": _Statement._attached,
    "DISCARD": _Statement._rows_gone,
    "IMPORT": _Statement._rows_gone,
    "SET SCHEMA": _Statement._moved,
    "RENAME": _Statement._renamed,
    "CONVERT TO CHARACTER": _Statement._converted,
    "CONVERT TO CHARSET": _Statement._converted,
    "ADD": _Statement._added,
    "MODIFY": _Statement._modified,
    "CHANGE": _Statement._changed,
    "ALTER": _Statement._altered_column,
}
"""The rules for ALTER TABLE, keyed by how the action begins. Every other action keeps the values of existing rows."""
