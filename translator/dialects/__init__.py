"""List the four built-in input formats, and those that other distributions offer as plug-ins.

A `DialectPlugin` describes each of them. To add a built-in dialect, add its plug-in to `DIALECTS` and to the entry
points in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from translator.config.options import parse_options
from translator.dialects._contained import Contained, contained_recognizer
from translator.dialects._installed import load
from translator.dialects._masked_json import masked_key
from translator.dialects._masked_values import MaskedValues as MaskedValues
from translator.dialects._plugin import DialectPlugin as DialectPlugin
from translator.dialects._plugin import MasksItself
from translator.dialects._time_limit import CALLS_PER_MESSAGE, SECONDS
from translator.dialects.canal.plugin import PLUGIN as CANAL
from translator.dialects.dts_avro.plugin import PLUGIN as DTS_AVRO
from translator.dialects.qlik.plugin import PLUGIN as QLIK
from translator.dialects.shareplex.plugin import PLUGIN as SHAREPLEX
from translator.errors import ConfigError
from translator.installed_plugins import InstalledPlugin as InstalledPlugin
from translator.installed_plugins import find
from translator.message import Dialect, Message, RequiresOptions, Setup

DIALECTS: dict[str, DialectPlugin] = {plugin.name: plugin for plugin in (QLIK, DTS_AVRO, SHAREPLEX, CANAL)}
"""The built-in dialects.

They are not looked up through their entry points. They therefore also work in a checkout, start without a search, and
cannot be replaced by another distribution.
"""


def plugin_of(name: str) -> DialectPlugin:
    """Return the built-in dialect or the plug-in with this name.

    Raises:
        ConfigError: the dialect does not exist, or its plug-in cannot be used.
    """
    return DIALECTS[name] if name in DIALECTS else load(name)


def installed() -> list[InstalledPlugin]:
    """Return all installed plug-ins, without loading them."""
    return list(find())


def plugins_among(names: Iterable[str]) -> list[InstalledPlugin]:
    """Return the plug-ins that provide the dialects with these names. Built-in dialects are not plug-ins."""
    wanted = {name for name in names if name not in DIALECTS}
    return [plugin for plugin in installed() if plugin.name in wanted] if wanted else []


def with_recognizer(warn: Callable[[str], object]) -> dict[str, DialectPlugin]:
    """Return the dialects that can recognize their messages: the built-in ones and all installed plug-ins.

    Args:
        warn: called with one sentence for each plug-in that cannot be used.
    """
    found = dict(DIALECTS)
    try:
        plugins = installed()
    except ConfigError as error:
        warn(f"plug-ins ignored: {error}")
        return found
    for name in dict.fromkeys(plugin.name for plugin in plugins):
        try:
            plugin = plugin_of(name)
            if plugin.recognizer is None:
                continue
            for options in plugin.recognizer.attempts:
                build(name, Setup("sample"), options)
        except ConfigError as error:
            warn(f"plug-in ignored: {error}")
            continue
        found[name] = replace(plugin, recognizer=contained_recognizer(name, plugin.recognizer, warn))
    return found


def build(name: str, setup: Setup, options: Mapping[str, Any]) -> Dialect:
    """Return the dialect with this name and these options.

    Raises:
        ConfigError: the dialect does not exist, its plug-in cannot be used, or it does not know an option.
    """
    plugin = plugin_of(name)
    parsed = parse_options(plugin.options, options, name)
    return plugin.build(setup, parsed) if name in DIALECTS else Contained(plugin, setup, parsed)


def check_declared(dialect: Dialect, options: Mapping[str, Any]) -> None:
    """Reject a configured source that leaves out facts that only its operator can know.

    Raises:
        ConfigError: the source lacks an option, and no default would be safe in a service.
    """
    if isinstance(dialect, RequiresOptions):
        dialect.check_declared(options)


def check_time(dialect: Dialect, stuck: float) -> None:
    """Check that the watchdog does not end the process while a plug-in's calls are within their time limit.

    Raises:
        ConfigError: `timing.stuck` is too short.
    """
    longest = CALLS_PER_MESSAGE * SECONDS
    if isinstance(dialect, Contained) and stuck <= longest:
        raise ConfigError(
            f"dialect {dialect.name} is a plug-in and may take {longest} s for a "
            f"message; set timing.stuck to more than {longest} (now {stuck:g})"
        )


def check_maskable(dialect: Dialect) -> None:
    """Check that the dialect can make masked copies.

    Raises:
        ConfigError: its plug-in has no function for masked copies.
    """
    if not isinstance(dialect, MasksItself) and _masked_value(dialect) is None:
        raise ConfigError(
            f"dialect {dialect.name} cannot make masked copies, because its plug-in has no `masked_value`. Capture "
            "without --mask if the records may be stored with their values"
        )


def masked_copy(dialect: Dialect, message: Message, masked: MaskedValues) -> Message:
    """Return a copy of a record with different row values. Headers are left out, because no dialect reads any.

    Raises:
        Unmaskable: the values of the record cannot be told apart from other text.
    """
    if isinstance(dialect, MasksItself):
        return dialect.masked_copy(message, masked)
    check_maskable(dialect)
    mask = _masked_value(dialect)
    value = message.value and mask(message.value, masked) if mask else None
    return replace(message, key=masked_key(message.key, masked), value=value, headers=())


def _masked_value(dialect: Dialect) -> Callable[[bytes, MaskedValues], bytes] | None:
    return dialect.masked_value if isinstance(dialect, Contained) else DIALECTS[dialect.name].masked_value
