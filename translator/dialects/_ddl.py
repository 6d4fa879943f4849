"""Parse SQL text to find out which tables a statement changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

from msgspec import Struct
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError

Name: TypeAlias = tuple[str, ...]
"""The parts of a table name as written, without quotes. The last part is the table."""

MAX_CHARS = 16_384
"""Longer statements are not parsed. Parsing a statement of this length takes up to 150 ms, and longer ones are rarely
DDL.
"""

_MAX_DEPTH = 16
"""Maximum nesting of parentheses. Deeper nesting could exhaust Python's stack, depending on the caller."""

_CACHED = 256
_EXECUTABLE_COMMENTS = ("/*!", "/*M!")
"""MySQL and MariaDB execute the text inside, but sqlglot takes it for a comment."""


class Statement(Struct, frozen=True):
    """A statement that was parsed completely."""

    tables: tuple[Name, ...]
    """The tables whose structure or rows the statement changes. Each is listed once, in the order of the text."""

    truncates: bool = False
    """True if the statement only empties its tables."""


@lru_cache(maxsize=_CACHED)
def read_statement(sql: str, dialect: str) -> Statement | None:
    """Return the effect of the text. Return None unless it is a single statement that can be parsed completely.

    It never raises, because the text comes from outside and "not understood" is a valid result. `dialect` is the name
    that sqlglot uses.
    """
    if len(sql) > MAX_CHARS or any(mark in sql for mark in _EXECUTABLE_COMMENTS):
        return None
    try:
        return _read(sql, Dialect.get_or_raise(dialect))
    except Exception:  # in addition to its own errors, sqlglot can raise AttributeError, RecursionError and others
        return None


def _read(sql: str, dialect: Dialect) -> Statement | None:
    tokens = _without_end(dialect.tokenize(sql))
    if not tokens or _depth(tokens) > _MAX_DEPTH:
        return None
    if tokens[0].token_type == TokenType.TRUNCATE:
        return _truncate(tokens[1:])
    if tokens[0].token_type == TokenType.RENAME:
        return _rename(tokens[1:], dialect)
    trees = _parsed(tokens, sql, dialect)
    rule = _RULES.get(type(trees[0])) if len(trees) == 1 else None
    return rule(trees[0]) if rule is not None else None


def syntax_trees(sql: str, dialect: str) -> list[exp.Expr] | None:
    """Return the syntax tree of each statement in a text from an operator, or None if one of them is not understood.

    `dialect` is the name that sqlglot uses.
    """
    try:
        found = Dialect.get_or_raise(dialect)
        return [tree for tree in _parsed(found.tokenize(sql), sql, found) if tree is not None]
    except Exception:  # in addition to its own errors, sqlglot can raise AttributeError, RecursionError and others
        return None


def _parsed(tokens: list[Token], sql: str, dialect: Dialect) -> list[Any]:
    trees: list[Any] = _strict(dialect.parser_class)(dialect=dialect, error_level=ErrorLevel.IMMEDIATE).parse(
        tokens, sql
    )
    return trees


def _without_end(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return tokens


_STEPS: Mapping[TokenType, int] = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}


def _depth(tokens: Iterable[Token]) -> int:
    return max(accumulate(_STEPS.get(token.token_type, 0) for token in tokens), default=0)


@cache
def _strict(parser: Any) -> Any:
    """Return the parser class, changed so that it raises an error for anything that it does not understand. Unchanged,
    it would log a warning that quotes the text.
    """
    return type(parser)("StrictParser", (parser,), {"_warn_unsupported": _refuse})


def _refuse(parser: object) -> None:
    raise ParseError("not understood")


def _statement(names: Iterable[Name | None], *, truncates: bool = False) -> Statement | None:
    """Return the statement, or None if one of the names is None."""
    found = list(names)
    known = [name for name in found if name]
    return Statement(tuple(dict.fromkeys(known)), truncates) if len(known) == len(found) else None


# -- statements that contain only names, read token by token


def _truncate(tokens: Sequence[Token]) -> Statement | None:
    """Parse `TRUNCATE [TABLE] a, …`. The parser in sqlglot accepts more: partitions, a list of columns, a star."""
    names = tokens[1:] if tokens and _is_word(tokens[0], "TABLE") else tokens
    return _statement(map(_dotted, _split(names, ",")), truncates=True)


def _rename(tokens: Sequence[Token], dialect: Dialect) -> Statement | None:
    """`RENAME TABLE a TO b, …`, which sqlglot does not parse."""
    words = dialect.tokenize(tokens[0].text) if len(tokens) == 1 else []
    return _statement(_renamed(words[1:])) if words and _is_word(words[0], "TABLE", "TABLES") else None


def _renamed(tokens: Sequence[Token]) -> Iterator[Name | None]:
    for pair in _split(tokens, ","):
        names = _split(pair, "TO")
        yield from map(_dotted, names) if len(names) == 2 else (None,)


def _split(tokens: Sequence[Token], word: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if _is_word(token, word):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _is_word(token: Token, *words: str) -> bool:
    return token.token_type not in _QUOTED and token.text.upper() in words


def _dotted(tokens: Sequence[Token]) -> Name | None:
    names, dots = tokens[::2], tokens[1::2]
    whole = len(tokens) % 2 == 1 and all(dot.token_type == TokenType.DOT for dot in dots)
    return tuple(name.text for name in names) if whole else None


_QUOTED = frozenset({TokenType.IDENTIFIER, TokenType.STRING})


# -- one rule for each parsed statement; each returns None if the statement is of a different kind


def _create(tree: exp.Expr) -> Statement | None:
    if tree.args["kind"] == "INDEX":
        return _statement([_name(tree.this.args.get("table"))])
    return _of_kind(tree, [tree.this])


def _drop(tree: exp.Expr) -> Statement | None:
    if tree.args["kind"] == "INDEX":
        on = tree.args.get("cluster")
        return _statement([_name(on.this) if isinstance(on, exp.OnProperty) else None])
    return _of_kind(tree, tree.args["tables"])


def _alter(tree: exp.Expr) -> Statement | None:
    renames = [action.this for action in tree.args.get("actions") or () if isinstance(action, exp.AlterRename)]
    return _of_kind(tree, [tree.this, *renames])


def _of_kind(tree: exp.Expr, named: Sequence[object]) -> Statement | None:
    kind = tree.args["kind"]
    if kind in _NO_TABLES or (kind == "TABLE" and _is_temporary(tree)):
        return Statement(())
    return _statement(map(_name, named)) if kind == "TABLE" else None


_NO_TABLES = frozenset({"DATABASE", "SCHEMA", "VIEW"})


def _is_temporary(tree: exp.Expr) -> bool:
    """Return whether the statement is for a temporary table, which is visible to one session and never replicated."""
    return bool(tree.args.get("temporary") or tree.find(exp.TemporaryProperty))


def _rows(tree: exp.Expr) -> Statement | None:
    """INSERT, UPDATE and DELETE on one table. If a statement names several tables, the names do not show which of them
    change.
    """
    several = tree.args.get("tables") or tree.args.get("using")
    return None if several else _statement([_name(tree.this, _NAME_PARTS | {"alias"})])


_NAME_PARTS = frozenset({"catalog", "db", "this"})


def _name(node: object, allowed: frozenset[str] = _NAME_PARTS) -> Name | None:
    """Return the name of a plain table: no function, no subquery, no join, no partition."""
    if isinstance(node, exp.Schema):  # a table with its columns
        node = node.this
    if not isinstance(node, exp.Table) or not {arg for arg, value in node.args.items() if value} <= allowed:
        return None
    parts = [node.args.get(part) for part in ("catalog", "db", "this")]
    names = tuple(part.name for part in parts if isinstance(part, exp.Identifier))
    return names if isinstance(node.this, exp.Identifier) else None


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr], Statement | None]] = {
    exp.Alter: _alter,
    exp.Create: _create,
    exp.Delete: _rows,
    exp.Drop: _drop,
    exp.Insert: _rows,
    exp.Update: _rows,
}
