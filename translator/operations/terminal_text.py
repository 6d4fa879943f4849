"""Text of others on the operator's terminal: names of tables, topics and headers come out of messages."""

from __future__ import annotations


def shown(text: str) -> str:
    """The text in one line: each character that moves a cursor, changes colours, or turns the direction of what
    follows is escaped as in JSON, so that JSON stays JSON."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
