"""Messages that carry SQL text and no rows: DDL, QUERY, and the truncate of one table (formats/canal.md section 9)."""

from __future__ import annotations

from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from translator.message import TableName

_EXECUTABLE_COMMENT = "/*!"


def truncates(sql: str, table: TableName) -> bool:
    """Whether the statement is `TRUNCATE [TABLE]` of that one table and nothing else.

    Read token by token, not parsed: a statement outside this form is not a smaller mistake for being understood in
    part. MySQL runs the text inside `/*! */`, which the tokenizer takes for a comment.
    """
    if "truncate" not in sql.lower() or _EXECUTABLE_COMMENT in sql:
        return False
    try:
        tokens = tokenize(sql, read="mysql")
    except SqlglotError:
        return False
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens or tokens[0].token_type != TokenType.TRUNCATE:
        return False
    name = tokens[2:] if tokens[1:2] and tokens[1].token_type == TokenType.TABLE else tokens[1:]
    parts, dots = [token.text for token in name[::2]], name[1::2]
    dotted = len(name) % 2 == 1 and all(token.token_type == TokenType.DOT for token in dots)
    return dotted and parts in ([table.table], [table.db, table.table])
