"""What readers find, in the form in which it is compared with the shops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Rows: TypeAlias = list[Mapping[str, Any]]
"""Rows as mappings from column to text."""

Found: TypeAlias = Mapping[str, Rows]
"""The rows of each table, by its levels."""

SECONDS = 900
"""The time of a reader: a bound for what hangs."""


class ReaderError(Exception):
    """A reader ended with an error, or cannot be had; the message has the end of what it said."""
