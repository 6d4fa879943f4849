"""The readers' results, in the format for comparison with the shops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Rows: TypeAlias = list[Mapping[str, Any]]
"""Rows as mappings from column to text."""

Found: TypeAlias = Mapping[str, Rows]
"""Each table's rows, keyed by the table's levels."""

SECONDS = 900
"""The timeout for a reader. Only a reader that hangs takes longer."""


class ReaderError(Exception):
    """Raised if a reader failed or is not available. The message has the end of the reader's output."""
