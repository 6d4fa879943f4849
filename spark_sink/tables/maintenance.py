"""The protocol for maintaining table files. Maintenance never changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class MaintenanceError(Exception):
    """A step was not done, because another writer committed first or the storage is unavailable. The table is
    unchanged.
    """


class TableFiles(NamedTuple):
    """A table's files.

    Args:
        version: the table version at which the files were counted.
        sizes: the sizes of the files in that version, in bytes.
        unsaved: the number of commits since the last checkpoint in the log. Every reader has to read these commits.
        remembered_days: the number of days for which the log remembers a removed file.
        parts: the number of groups of files. Files are only merged within their group.
        foreign: table features that maintenance does not support. If there are any, the table is not maintained.
        created: the time at which the table was created, in seconds since 1970; None if unknown.
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
    """The maintenance steps. Each step makes at most one commit, so an interrupted step leaves the table unchanged.

    Raises:
        MaintenanceError: every method can raise this error.
    """

    def files(self, name: str) -> TableFiles | None:
        """Return the current files, or None if the table does not exist."""

    def compact(self, name: str, target_bytes: int) -> Compacted:
        """Replace small files by a few files of about this size."""

    def checkpoint(self, name: str) -> None:
        """Write the state after all commits so far as a checkpoint."""

    def remember(self, name: str, days: int) -> None:
        """Set how long the log remembers removed files. Vacuum cannot find files that the log has forgotten."""

    def vacuum(self, name: str, days: float) -> int:
        """Delete the files that were removed from the table at least this many days ago, and return the number of
        deleted files. Other files in the folder are only deleted if they are equally old and were left behind by a
        failed writer of this table.
        """
