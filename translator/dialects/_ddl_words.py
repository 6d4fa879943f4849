"""Split SQL text into words. It covers only the syntax that all four grammars share.

The classification of statements (`_ddl_effects`) must also read SQL that no parser understands. A statement about
partitions removes rows whether or not it is understood completely.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

MYSQL, ORACLE, POSTGRES, TSQL, OTHER = "mysql", "oracle", "postgres", "tsql", "other"
"""Grammars, by sqlglot's dialect names. OTHER means that names and types are unknown."""

WORD, NAME, STRING, NUMBER, MARK, ODD = "word", "name", "string", "number", "mark", "odd"
"""The kinds of tokens. `odd` is a string that is not terminated, or whose value depends on server settings."""


class Token(NamedTuple):
    """A word as spelled, a name or a string without quotes, a number, or one character."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        """Return whether this is one of the keywords, which are in upper case."""
        return self.kind == WORD and self.text.upper() in words

    def is_mark(self, mark: str) -> bool:
        return self.kind == MARK and self.text == mark


_STRINGS = r"'(?:[^']|'')*+(?:'|\Z)"
_MYSQL_STRINGS = r"'(?:[^'\\]|''|\\.)*+(?:'|\\?\Z)"
_MYSQL_DOUBLE = r'"(?:[^"\\]|""|\\.)*+(?:"|\\?\Z)'
_DOUBLE = r'"(?:[^"]|"")*+(?:"|\Z)'


def _pattern(*, comment: str, string: str, double: str, name: str, word: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<blank>\s++|{comment})|(?P<string>{string})|(?P<double>{double})|(?P<name>{name})"
        rf"|(?P<number>(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?+(?![^\W\d_]))|(?P<word>{word})|(?P<mark>.)",
        re.DOTALL,
    )


_COMMENTS = r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_NONE = r"(?!)"
_WORD = r"[\w$]++"

# MySQL and MariaDB run the text inside `/*! … */`, so only the comment marks are removed.
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    MYSQL: _pattern(
        comment=r"--(?=\s|\Z)[^\n]*+|\#[^\n]*+|/\*M?!\d*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|\*/",
        string=_MYSQL_STRINGS,
        double=_MYSQL_DOUBLE,
        name=r"`(?:[^`]|``)*+(?:`|\Z)",
        word=_WORD,
    ),
    ORACLE: _pattern(comment=_COMMENTS, string=_STRINGS, double=_DOUBLE, name=_NONE, word=r"[\w$\#]++"),
    OTHER: _pattern(comment=_COMMENTS, string=_STRINGS, double=_DOUBLE, name=_NONE, word=r"[\w$\#]++"),
    POSTGRES: _pattern(comment=_COMMENTS, string=_STRINGS, double=_DOUBLE, name=_NONE, word=_WORD),
    TSQL: _pattern(
        comment=_COMMENTS, string=_STRINGS, double=_DOUBLE, name=r"\[(?:[^\]]|\]\])*+(?:\]|\Z)", word=r"[\w$\#@]++"
    ),
}

FOLDS: Mapping[str, Callable[[str], str]] = {ORACLE: str.upper, POSTGRES: str.lower}
"""The function that folds the case of unquoted names, by SQL grammar."""


def words_of(sql: str, grammar: str) -> list[Token]:
    """Return the tokens in SQL text, without comments. It takes linear time and never raises."""
    found = []
    for match in _PATTERNS[grammar].finditer(sql):
        kind, text = match.lastgroup, match[0]
        if kind == "blank" or kind is None:
            continue
        if kind in ("string", "double", "name"):
            found.append(_quoted(kind, text, grammar))
        else:
            found.append(Token(kind, text))
    return found


def _quoted(kind: str, text: str, grammar: str) -> Token:
    end = "]" if text[0] == "[" else text[0]
    whole = len(text) > 1 and text[-1] == end
    inside = text[1:-1] if whole else text[1:]
    # Whether a backslash is an escape character depends on sql_mode.
    odd = not whole or (grammar == MYSQL and kind != "name" and "\\" in inside)
    value = inside.replace(end * 2, end)
    if kind == "string":
        return Token(ODD if odd else STRING, value)
    return Token(ODD if odd else NAME, value)


def split(tokens: Sequence[Token], mark: str) -> list[list[Token]]:
    """Return the parts between separators outside parentheses, without empty parts."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.is_mark("("):
            depth += 1
        elif token.is_mark(")"):
            depth -= 1
        if depth <= 0 and token.is_mark(mark):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
