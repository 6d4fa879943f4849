"""Find the plug-ins that other distributions offer as entry points, using only their metadata. Nothing here imports a
plug-in.

This reads the metadata of every installed distribution, which takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Container
from importlib.metadata import EntryPoint, entry_points

from msgspec import Struct

from cdc_core.errors import ConfigError

REASON_CHARS = 300
"""Maximum length of an exception's text when it is quoted in an error."""


class InstalledPlugin(Struct, frozen=True, order=True):
    """A plug-in that was found but not necessarily loaded."""

    name: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


def find(group: str, built_in: Container[str]) -> dict[InstalledPlugin, EntryPoint]:
    """Return the plug-ins in a group of entry points, ordered by name, without loading them.

    Args:
        built_in: names that plug-ins must not use.

    Raises:
        ConfigError: the metadata of a distribution cannot be read, whether or not it offers a plug-in.
    """
    try:
        found = {_described(entry): entry for entry in entry_points(group=group) if entry.name not in built_in}
    except Exception as error:  # Python does not check what it reads, and any distribution can be damaged
        raise ConfigError(
            f"the installed plug-ins cannot be listed, because the metadata of a distribution is damaged "
            f"({type(error).__name__}: {error}). Reinstall this distribution; `pip check` can find it"[:REASON_CHARS]
        ) from None
    return dict(sorted(found.items(), key=lambda offer: offer[0]))


def _described(entry: EntryPoint) -> InstalledPlugin:
    # Some entry points were not read from a distribution, and the metadata of a distribution can lack any line.
    metadata = None if entry.dist is None else entry.dist.metadata
    known = {} if metadata is None else dict(metadata.items())  # type: ignore[attr-defined]  # an email.message.Message
    return InstalledPlugin(entry.name, known.get("Name") or "unknown", known.get("Version") or "unknown")
