"""Counts in texts for people."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which is in the plural except for 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
