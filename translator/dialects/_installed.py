"""Load the dialects that other distributions offer as plug-ins. As long as all sources name built-in dialects, nothing
here runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from msgspec import Struct

from translator.dialects._plugin import API, DialectPlugin
from translator.errors import ConfigError, unknown
from translator.installed_plugins import BUILT_IN, REASON_CHARS, InstalledPlugin, find
from translator.proposals import Recognizer

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


def load(name: str) -> DialectPlugin:
    """Load the plug-in with this name.

    Raises:
        ConfigError: no distribution or more than one offers the name, or the plug-in cannot be used.
    """
    found = find()
    offers = [(plugin, entry) for plugin, entry in found.items() if plugin.name == name]
    if not offers:
        raise ConfigError(unknown("dialect", name, [*BUILT_IN, *(plugin.name for plugin in found)]))
    if len(offers) > 1:
        both = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin, _ in offers)
        raise ConfigError(f"dialect {name} is offered by several distributions: {both}. Uninstall all but one")
    ((plugin, entry),) = offers
    return loaded_from(plugin, entry)


def loaded_from(plugin: InstalledPlugin, entry: EntryPoint) -> DialectPlugin:
    """Import a plug-in and check it.

    Raises:
        ConfigError: the plug-in cannot be used.
    """
    return _checked(plugin, _loaded(plugin, entry))


def _loaded(plugin: InstalledPlugin, entry: EntryPoint) -> object:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # no message has been read yet, so the text contains no row data
        reason = f"{type(error).__name__}: {error}"[:REASON_CHARS]
        raise ConfigError(f"dialect {plugin} cannot be loaded from {entry.value}: {reason}") from None


def _checked(plugin: InstalledPlugin, loaded: object) -> DialectPlugin:
    if not isinstance(loaded, DialectPlugin):
        raise ConfigError(
            f"dialect {plugin}: the entry point refers to {type(loaded).__name__} instead of a DialectPlugin"
        )
    if type(loaded.api) is not int or loaded.api != API:
        raise ConfigError(
            f"dialect {plugin} was written for version {loaded.api!r} of the dialect interface, but this translator "
            f"has version {API}. Install a release of {plugin.distribution} for version {API}, or a translator with "
            f"version {loaded.api!r} (docs/dialects/your-own.md)"
        )
    if loaded.name != plugin.name or not _NAME.fullmatch(plugin.name):
        raise ConfigError(
            f"dialect {plugin}: its DialectPlugin is named {loaded.name!r}. Both names must be equal, and match "
            f"{_NAME.pattern}"
        )
    for field, (is_valid, expected) in _FIELDS.items():
        value = getattr(loaded, field)
        if not is_valid(value):
            raise ConfigError(f"dialect {plugin}: {field} is {_kind(value)}; expected {expected}")
    return loaded


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _is_recognizer(value: object) -> bool:
    if not isinstance(value, Recognizer):
        return False
    attempts = value.attempts
    return (
        callable(value.propose) and isinstance(attempts, (tuple, list)) and all(isinstance(a, dict) for a in attempts)
    )


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "build": (callable, "a function or a class"),
    "options": (lambda value: isinstance(value, type) and issubclass(value, Struct), "a subclass of msgspec.Struct"),
    "recognizer": (
        lambda value: value is None or _is_recognizer(value),
        "a Recognizer with a tuple of dicts and a function, or None",
    ),
    "masked_value": (lambda value: value is None or callable(value), "a function or None"),
}
"""The fields of a DialectPlugin that Python does not check. Each has its check, and a text that says what is expected.
"""
