"""The kind of each table, as configured in `tables.modes`, `.keys` and `.shared`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

Said = TypeVar("Said")

# The column that separates the rows from different source tables in a shared table. This column is part of the key.
SOURCE = "_cdc_source"

# The column with the time at which a row was deleted at the source. Only a mirror that keeps deleted rows needs it.
DELETED_AT = "_cdc_deleted_at"


class Mode(StrEnum):
    """The meaning of a table's rows (docs/sink-design.md)."""

    MIRROR = "mirror"  # the source table's current rows
    HISTORY = "history"  # row versions, each with a beginning and an end
    CHANGELOG = "changelog"  # the events, each exactly once


class Format(StrEnum):
    """A table's file format."""

    DELTA = "delta"
    ICEBERG = "iceberg"


# Keyed by table name or pattern; all other tables are Delta tables.
Formats = Mapping[str, Format]


class TableSpec(NamedTuple):
    """The specification for one table.

    Args:
        key: the key columns as named in events, if the configuration declares them.
        shared: whether several source tables share the table.
        soft: whether deleted rows stay in the table.
    """

    mode: Mode = Mode.MIRROR
    key: tuple[str, ...] = ()
    shared: bool = False
    format: Format = Format.DELTA
    soft: bool = False


PLAIN = TableSpec()


def match_rule(target: str, by_pattern: Mapping[str, Said]) -> Said | None:
    """Return the rule for a table. It is the rule for its name or, failing that, for the first pattern that matches.
    Case is ignored.
    """
    name = target.lower()
    lowered = {pattern.lower(): said for pattern, said in by_pattern.items()}
    if name in lowered:
        return lowered[name]
    return next((said for pattern, said in lowered.items() if fnmatchcase(name, pattern)), None)


def format_of(target: str, formats: Formats) -> Format:
    """Return a table's format."""
    return match_rule(target, formats) or Format.DELTA
