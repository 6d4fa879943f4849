"""Read which differences and steps the releases announce. The file with them is part of the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import msgspec
from msgspec import Struct

from translator.errors import ConfigError, unknown


class AnnouncedChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Differences between a release's events and those of the previous release.

    Args:
        fields: envelope fields, or differences in parentheses (`upgrade_check`).
    """

    dialects: tuple[str, ...]
    fields: tuple[str, ...]
    what: str


class ReleaseNotes(Struct, frozen=True, forbid_unknown_fields=True):
    """The changes and steps that a release announces to operators of an existing installation."""

    release: str
    changes: tuple[AnnouncedChange, ...] = ()
    steps: tuple[str, ...] = ()


def all_releases() -> list[ReleaseNotes]:
    """Return the notes of all releases, oldest first."""
    text = files("translator").joinpath("upgrades.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=list[ReleaseNotes])


def releases_after(earlier: str) -> Sequence[ReleaseNotes]:
    """Return the notes of all releases after an earlier one, oldest first.

    Raises:
        ConfigError: no release has this number.
    """
    notes = all_releases()
    numbers = [one.release for one in notes]
    if earlier not in numbers:
        raise ConfigError(f"--from: {unknown('release', earlier, numbers)}")
    return notes[numbers.index(earlier) + 1 :]
