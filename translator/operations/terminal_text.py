"""Print untrusted text on the operator's terminal. The names of tables, topics and headers come from messages."""

from __future__ import annotations


def shown(text: str) -> str:
    """Return the text in one line. Characters that move the cursor, change colors or reverse the text direction are
    escaped as in JSON, so JSON remains valid.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
