"""A plug-in in its project folder, whether or not it is installed."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from msgspec import Struct

from translator.dialects import DIALECTS, DialectPlugin
from translator.dialects._installed import loaded_from
from translator.errors import ConfigError
from translator.installed_plugins import GROUP, InstalledPlugin


class Package(Struct, frozen=True):
    """A plug-in's project.

    Args:
        entry: the module and name of the DialectPlugin, as in the entry point.
        paths: the folders from which the module is imported.
    """

    name: str
    distribution: str
    version: str
    entry: str
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"

    def load(self) -> DialectPlugin:
        """Import the plug-in from its folder.

        Raises:
            ConfigError: the plug-in cannot be used.
        """
        if self.name in DIALECTS and DIALECTS[self.name] is not _of_builtin(self):
            raise ConfigError(f"dialect {self.name} is built in, and a plug-in cannot replace it. Choose another name")
        sys.path[:0] = [path for path in self.paths if path not in sys.path]
        plugin = InstalledPlugin(self.name, self.distribution, self.version)
        return loaded_from(plugin, EntryPoint(self.name, self.entry, GROUP))


def _of_builtin(package: Package) -> DialectPlugin | None:
    return DIALECTS[package.name] if package.entry.startswith("translator.dialects.") else None


def read_package(folder: Path) -> Package:
    """Return the plug-in that a project's pyproject.toml declares.

    Raises:
        ConfigError: the file cannot be read, or does not have exactly one entry point for a dialect.
    """
    file = folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        entries: Any = project.get("entry-points", {}).get(GROUP, {})
        distribution, version = str(project["name"]), str(project.get("version", "unknown"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}. Specify the folder of a plug-in") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{file} is not a distribution's project file: {type(error).__name__}: {error}") from None
    if not isinstance(entries, dict):
        raise ConfigError(f'{file}: [project.entry-points."{GROUP}"] is {type(entries).__name__}; expected a table')
    if len(entries) != 1:
        raise ConfigError(
            f'{file} has {len(entries)} entry points in [project.entry-points."{GROUP}"]; expected exactly one'
        )
    ((name, entry),) = entries.items()
    paths = tuple(str(path.resolve()) for path in (folder, folder / "src") if path.is_dir())
    return Package(name, distribution, version, str(entry), paths)
