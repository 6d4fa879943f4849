"""The dialects that other distributions offer as plug-ins.

Finding plug-ins reads the metadata of every installed distribution, which takes milliseconds. Nothing here runs while
all sources name built-in dialects.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points

from msgspec import Struct

from translator.dialects._plugin import API, DialectPlugin
from translator.errors import ConfigError, unknown

GROUP = "cdc_translator.dialects"
"""The group of entry points in which distributions offer dialects."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_REASON_CHARS = 300


class InstalledPlugin(Struct, frozen=True, order=True):
    """A plug-in that was found but not necessarily loaded."""

    name: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


def find(builtin: Collection[str]) -> dict[InstalledPlugin, EntryPoint]:
    """Return the installed plug-ins in the order of their names, without loading them.

    Args:
        builtin: the names of the built-in dialects. A plug-in with such a name is never used.
    """
    found = {_described(entry): entry for entry in entry_points(group=GROUP) if entry.name not in builtin}
    return dict(sorted(found.items()))


def load(name: str, builtin: Collection[str]) -> DialectPlugin:
    """Load the plug-in with this name.

    Raises:
        ConfigError: no distribution or several distributions offer the name, or the plug-in cannot be used.
    """
    found = find(builtin)
    offers = [(plugin, entry) for plugin, entry in found.items() if plugin.name == name]
    if not offers:
        raise ConfigError(unknown("dialect", name, [*builtin, *(plugin.name for plugin in found)]))
    if len(offers) > 1:
        both = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin, _ in offers)
        raise ConfigError(f"dialect {name} is offered by several distributions: {both}. Uninstall all but one")
    ((plugin, entry),) = offers
    return _checked(plugin, _loaded(plugin, entry))


def _described(entry: EntryPoint) -> InstalledPlugin:
    if entry.dist is None:  # only for entry points that were not read from a distribution
        return InstalledPlugin(entry.name, "unknown", "unknown")
    return InstalledPlugin(entry.name, entry.dist.name, entry.dist.version)


def _loaded(plugin: InstalledPlugin, entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:  # no message has been read yet, so the text contains no row data
        reason = f"{type(error).__name__}: {error}"[:_REASON_CHARS]
        raise ConfigError(f"dialect {plugin} cannot be loaded from {entry.value}: {reason}") from None


def _checked(plugin: InstalledPlugin, loaded: object) -> DialectPlugin:
    if not isinstance(loaded, DialectPlugin):
        raise ConfigError(
            f"dialect {plugin}: the entry point refers to {type(loaded).__name__} instead of a DialectPlugin"
        )
    if loaded.api != API:
        raise ConfigError(
            f"dialect {plugin} was written for version {loaded.api!r} of the dialect interface, but this translator "
            f"has version {API}. Install a release of {plugin.distribution} for version {API}, or a translator with "
            f"version {loaded.api!r} (docs/dialects/your-own.md)"
        )
    if loaded.name != plugin.name or not _NAME.fullmatch(loaded.name):
        raise ConfigError(
            f"dialect {plugin}: its DialectPlugin is named {loaded.name!r}. Both names must be equal, and match "
            f"{_NAME.pattern}"
        )
    return loaded
