"""The files of tables behind one protocol: what a format can tell of them, and do about them. No row changes by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class MaintenanceError(Exception):
    """A step was not done, and the table is as before: another writer came first, or its storage is away."""


class TableFiles(NamedTuple):
    """The files of a table.

    Args:
        version: of the table, at which they were counted.
        sizes: of the files of that version, in bytes.
        unsaved: commits since the last checkpoint of the log, which everyone reads who opens the table.
        remembered_days: for so long the log knows a file that was removed.
        parts: of which each has files of its own, that are put together with no others.
        foreign: features of the table that its format's maintenance does not know; nothing is done then.
    """

    version: int
    sizes: Sequence[int]
    unsaved: int
    remembered_days: float
    foreign: Sequence[str] = ()
    parts: int = 1


class Compacted(NamedTuple):
    """The number of files that were replaced, and of those in their place."""

    removed: int
    added: int


class TableMaintenance(Protocol):
    """Every step is a commit of its own, or none: who is killed in the middle leaves a table that is as before.

    Raises:
        MaintenanceError: by every method.
    """

    def files(self, name: str) -> TableFiles | None:
        """The files as they are now; None when there is no such table."""

    def compact(self, name: str, target_bytes: int) -> Compacted:
        """Put few files of about a size in the place of smaller ones."""

    def checkpoint(self, name: str) -> None:
        """Write down what all commits until now add up to."""

    def remember(self, name: str, days: int) -> None:
        """Let the log know a removed file for so long: what it no longer knows, no vacuum finds."""

    def vacuum(self, name: str, days: float) -> int:
        """Remove the files that were removed from the table longer ago; how many. Of what else lies in the folder go at
        most files that died writers of this table have left, when they are as old."""
