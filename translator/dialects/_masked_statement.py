"""Make masked copies of SQL text. Literals and comments change. Names, keywords and types stay the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from translator.dialects._masked_values import MaskedValues

_CLOSING: Mapping[str, str] = {"[": "]", "(": ")", "{": "}", "<": ">"}
"""The opening delimiters of Oracle's q'[…]' literals that differ from their closing delimiters."""

# Each piece begins where the last one ends and is never read twice, so that the time grows linearly with the text.
_PIECE = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<kept>/\*!)                                    # MySQL executes the rest
  | (?P<block>/\*)
  | (?P<line>--[^\n]*|\#[^\n]*)
  | (?P<dollar>\$(?:[^\W\d]\w{0,62})?\$)
  | [nN]?[qQ]'(?P<own>[^\s])
  | (?P<quoted>'(?:[^'\\]|\\.|'')*+'?|"(?:[^"\\]|\\.|"")*+"?|`[^`]*+`?)
  | (?P<number>\.?\d[\w.]*)
  | (?P<word>[^\W\d][\w$\#]*)
  | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)
_BLOCK = re.compile(r"/\*|\*/")

_DDL = frozenset({"create", "alter", "drop", "rename", "truncate", "comment"})

_SIZED = re.compile(
    "bigint|binary|bit|blob|char|character|clob|datetime|dec|decimal|double|enum|fixed|float|float4|"
    "float8|int|int1|int2|int3|int4|int8|integer|interval|mediumint|nchar|nclob|number|numeric|nvarchar|"
    "nvarchar2|precision|raw|real|set|smallint|text|time|timestamp|timestamptz|timetz|tinyint|urowid|"
    "varbinary|varbit|varchar|varchar2|varying|varraw|year"
)
"""Types that may have a length, a precision or a scale in parentheses."""

_SIZE = re.compile(r"-?\d{1,5}", re.ASCII)
"""A length or a precision. A longer number is always a value, whatever the word before it."""


def masked_statement(sql: str, masked: MaskedValues, *, quotes: str = "'\"") -> str:
    """Return SQL with different literals and comments. Only numbers that are lengths of column types in DDL stay
    unchanged.

    Args:
        quotes: the quote characters for strings. Any other quote contains a name.
    """
    return "".join(_pieces(sql, masked, quotes))


def _pieces(sql: str, masked: MaskedValues, quotes: str) -> Iterator[str]:
    at, is_ddl = 0, None
    before = ""  # the last word or sign, in lower case
    sizes = False  # within the parentheses after a type
    while at < len(sql):
        found = _PIECE.match(sql, at)
        if found is None:  # cannot happen, because the last alternative matches every character
            raise AssertionError(at)
        piece, kind = found[0], found.lastgroup
        end = found.end()
        if kind == "block":
            end = _end_of_block(sql, at)
            yield "/*" + _comment(sql[at + 2 : end], masked)
        elif kind == "line":
            lead = 1 if piece[0] == "#" else 2
            yield piece[:lead] + masked.text(piece[lead:])
        elif kind == "dollar":
            end, body = _until(sql, end, piece)
            yield piece + masked.text(body) + (piece if end > found.end() + len(body) else "")
        elif kind == "own":
            closing = _CLOSING.get(found["own"], found["own"]) + "'"
            end, body = _until(sql, end, closing)
            yield piece + masked.text(body) + (closing if end > found.end() + len(body) else "")
        elif kind == "quoted":
            yield _quoted(piece, masked, quotes)
        elif kind == "number":
            yield piece if is_ddl and sizes and _SIZE.fullmatch(piece) else masked.number(piece)
        else:
            yield piece
        at = end
        if kind in ("word", "other"):
            sign = piece.lower()
            if is_ddl is None:
                is_ddl = sign in _DDL
            if sign == "(":
                sizes = _SIZED.fullmatch(before) is not None
            elif sign == ")":
                sizes = False
            before = sign


def _end_of_block(sql: str, at: int) -> int:
    """Return the end of a comment. A comment may contain others, as in PostgreSQL, and may be unterminated."""
    depth = 0
    for found in _BLOCK.finditer(sql, at):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(sql)


def _comment(text: str, masked: MaskedValues) -> str:
    body = text.removesuffix("*/")
    return masked.text(body) + text[len(body) :]


def _until(sql: str, at: int, closing: str) -> tuple[int, str]:
    """Return the end of a literal, and its content. An unterminated literal extends to the end of the text."""
    found = sql.find(closing, at)
    return (len(sql), sql[at:]) if found < 0 else (found + len(closing), sql[at:found])


def _quoted(piece: str, masked: MaskedValues, quotes: str) -> str:
    quote = piece[0]
    if quote not in quotes:
        return piece
    closed = len(piece) > 1 and piece.endswith(quote)
    body = piece[1:-1] if closed else piece[1:]
    return quote + masked.text(body.replace(quote * 2, "  ")) + (quote if closed else "")
