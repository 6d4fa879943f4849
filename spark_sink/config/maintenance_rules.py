"""The maintenance rules in the configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MaintenanceRules:
    """Rules for maintaining table files. The defaults are those of the settings.

    Args:
        enabled: maintain tables automatically between batches.
        every_seconds: the pause between the end of one run and the start of the next.
        budget_seconds: the time after which a run starts no more steps.
        small_files: the number of small files at which a table's files are merged.
        keep_days: how long cuts, sweeps and readers can use old versions.
        commands_days: how long finished commands are kept.
    """

    enabled: bool = True
    every_seconds: float = 60
    budget_seconds: float = 5
    small_files: int = 16
    keep_days: int = 7
    commands_days: int = 30
