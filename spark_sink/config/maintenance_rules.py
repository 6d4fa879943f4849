"""The rules of the configuration for the files of tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MaintenanceRules:
    """The defaults are those of the settings.

    Args:
        enabled: the sink does it by itself, between batches.
        every_seconds: between the ends and the beginnings of two turns.
        budget_seconds: after which a turn begins no further step.
        small_files: of a table, that are made one.
        keep_days: so far back cuts, sweeps and readers of old versions reach.
        commands_days: so long commands that have ended are remembered.
    """

    enabled: bool = True
    every_seconds: float = 60
    budget_seconds: float = 5
    small_files: int = 16
    keep_days: int = 7
    commands_days: int = 30
