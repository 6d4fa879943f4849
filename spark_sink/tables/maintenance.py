"""Define the protocol for maintaining table files. Maintenance never changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from spark_sink.schema.layout import FileLayout

DEFAULT_TARGET = 128 << 20


def target_of(layout: FileLayout) -> int:
    """Return the size in bytes to which a table's files are merged."""
    return DEFAULT_TARGET if layout.file_megabytes is None else layout.file_megabytes << 20


class MaintenanceError(Exception):
    """A step was not taken, because another writer committed first or the storage is unavailable. The table is
    unchanged.
    """


class TableFiles(NamedTuple):
    """A table's files.

    Args:
        version: the table version at which the files were counted.
        sizes: the sizes of the files in that version, in bytes.
        unsaved: the number of commits since the last checkpoint in the log. Every reader has to read these commits.
        remembered_days: the number of days for which the log remembers a removed file.
        partitions: the partition of each file, in the order of `sizes`. Empty if the table is not partitioned. Files
            are merged only within their partition.
        foreign: the table features that maintenance does not support. If there are any, the table is not maintained.
        created: the time at which the table was created, in seconds since 1970, or None if it is unknown.
        target_bytes: the size up to which smaller files are merged.
    """

    version: int
    sizes: Sequence[int]
    unsaved: int
    remembered_days: float
    foreign: Sequence[str] = ()
    partitions: Sequence[str] = ()
    created: float | None = None
    target_bytes: int = DEFAULT_TARGET


class Compacted(NamedTuple):
    """The number of replaced files, and of the files that replaced them."""

    removed: int
    added: int


class TableMaintenance(Protocol):
    """The maintenance steps. Each step makes at most one commit, so an interrupted step leaves the table unchanged.

    Raises:
        MaintenanceError: every method may raise this error.
    """

    def files(self, name: str) -> TableFiles | None:
        """Return the current files, or None if the table does not exist."""

    def compact(self, name: str, target_bytes: int) -> Compacted:
        """Replace small files by a few files of about this size."""

    def checkpoint(self, name: str) -> None:
        """Write the state after all commits so far as a checkpoint."""

    def remember(self, name: str, days: int) -> None:
        """Set how long the log remembers removed files. Once the log has forgotten a file, vacuum cannot find it."""

    def vacuum(self, name: str, days: float) -> int:
        """Delete the files that were removed from the table at least this many days ago, and return how many were
        deleted. Other files in the folder are deleted only if they are just as old, and a failed writer of this table
        has left them behind.
        """
