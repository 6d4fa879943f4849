"""Find the dialect plug-ins that other distributions offer, using only their metadata."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from cdc_core import installed_plugins
from cdc_core.installed_plugins import REASON_CHARS as REASON_CHARS
from cdc_core.installed_plugins import InstalledPlugin as InstalledPlugin

GROUP = "cdc_translator.dialects"
"""The entry point group in which distributions offer dialects."""

BUILT_IN = ("qlik", "dts_avro", "shareplex", "canal")
"""The names of the built-in dialects. A plug-in with one of these names is never used."""


def find() -> dict[InstalledPlugin, EntryPoint]:
    """Return the installed plug-ins, ordered by name, without loading them.

    Raises:
        ConfigError: the metadata of a distribution cannot be read, whether or not it offers a plug-in.
    """
    return installed_plugins.find(GROUP, BUILT_IN)
