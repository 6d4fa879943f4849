"""Find a command's configuration file, and give this process access to its object store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_core import command_line
from spark_sink.config import settings
from spark_sink.errors import ConfigError

if TYPE_CHECKING:
    from spark_sink.tables.formats import FormatTables


# The environment variable and the file name that are used if the option is missing.
VARIABLE, FILE = "CDC_SINK_CONFIG", "sink.yaml"

config_option = command_line.config_option(FILE, VARIABLE)


def opened(loaded: settings.Settings) -> FormatTables:
    """Return a configuration's tables for reading.

    Raises:
        ConfigError: the warehouse is a folder that does not exist.
    """
    warehouse = loaded.tables.warehouse
    if "://" not in warehouse and not Path(warehouse).is_dir():
        raise ConfigError(
            f"tables.warehouse: the folder {warehouse} does not exist on this machine. Check the path, and run this "
            "command where the sink's tables are stored"
        )
    # Imported here because help and configuration errors need no table library.
    from spark_sink.tables.formats import FormatTables

    rules = loaded.tables.rules
    return FormatTables(warehouse, formats=rules.formats, catalog=loaded.iceberg_catalog, layouts=rules.layouts)


def configured(path: Path) -> settings.Settings:
    """Load the settings from a file, and give this process access to their object store.

    Raises:
        ConfigError: see cdc_core.config.
    """
    loaded = settings.load(path)
    loaded.storage.enter(loaded.tables.warehouse, os.environ)
    return loaded
