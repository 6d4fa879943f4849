"""Counts in text for people."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
