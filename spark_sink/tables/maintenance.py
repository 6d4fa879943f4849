"""The protocol for maintaining table files. Maintenance never changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class MaintenanceError(Exception):
    """A step was not done, and the table is unchanged, because another writer committed first or the storage is
    unavailable.
    """


class TableFiles(NamedTuple):
    """A table's files.

    Args:
        version: the table version at which they were counted.
        sizes: the file sizes in that version, in bytes.
        unsaved: commits since the last checkpoint in the log. Every reader has to read them.
        remembered_days: how long the log remembers a removed file.
        parts: groups of files that are only merged with each other.
        foreign: table features that maintenance does not support; if there are any, nothing is done.
        created: when the table was created, in seconds since 1970; None if unknown.
    """

    version: int
    sizes: Sequence[int]
    unsaved: int
    remembered_days: float
    foreign: Sequence[str] = ()
    parts: int = 1
    created: float | None = None


class Compacted(NamedTuple):
    """The number of replaced files, and of the files that replaced them."""

    removed: int
    added: int


class TableMaintenance(Protocol):
    """The maintenance steps. Each makes at most one commit, so an interrupted step leaves the table unchanged.

    Raises:
        MaintenanceError: by every method.
    """

    def files(self, name: str) -> TableFiles | None:
        """Return the current files, or None if the table does not exist."""

    def compact(self, name: str, target_bytes: int) -> Compacted:
        """Replace small files with a few files of about this size."""

    def checkpoint(self, name: str) -> None:
        """Write the state after all commits so far as a checkpoint."""

    def remember(self, name: str, days: int) -> None:
        """Set how long the log remembers removed files. Vacuum cannot find files that the log has forgotten."""

    def vacuum(self, name: str, days: float) -> int:
        """Delete the files that were removed from the table before the given time, and return how many were deleted.
        Other files in the folder are only deleted if they are equally old and were left by a failed writer of this
        table.
        """
