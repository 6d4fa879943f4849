"""Maintenance of table files behind one protocol. It never changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class MaintenanceError(Exception):
    """A step was not done, and the table is unchanged: another writer came first, or its storage is unavailable."""


class TableFiles(NamedTuple):
    """The files of a table.

    Args:
        version: the version of the table at which they were counted.
        sizes: the sizes of the files in that version, in bytes.
        unsaved: commits since the last checkpoint of the log, which every reader that opens the table reads.
        remembered_days: how long the log keeps a removed file.
        parts: groups of files that are only merged with each other.
        foreign: features of the table that its format's maintenance does not support; nothing is done then.
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
    """The steps. Each is a single commit or none, so a step that is killed leaves the table unchanged.

    Raises:
        MaintenanceError: by every method.
    """

    def files(self, name: str) -> TableFiles | None:
        """Return the current files; None if the table does not exist."""

    def compact(self, name: str, target_bytes: int) -> Compacted:
        """Replace small files by a few of about this size."""

    def checkpoint(self, name: str) -> None:
        """Write the state after all commits so far as a checkpoint."""

    def remember(self, name: str, days: int) -> None:
        """Set how long the log keeps a removed file. Vacuum cannot find files that the log no longer has."""

    def vacuum(self, name: str, days: float) -> int:
        """Delete the files that were removed from the table longer ago, and return their number. Other files in the
        folder are only deleted if a failed writer of this table left them and they are as old.
        """
