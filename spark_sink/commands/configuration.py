"""The configuration of a command: which file, and the object store that it names within reach of this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_core import command_line
from spark_sink.config import settings

if TYPE_CHECKING:
    from spark_sink.tables.formats import FormatTables


# Where no option says: this variable, else this file in the working directory.
VARIABLE, FILE = "CDC_SINK_CONFIG", "sink.yaml"

config_option = command_line.config_option(FILE, VARIABLE)


def opened(loaded: settings.Settings) -> FormatTables:
    """Return the tables of a configuration, to be looked at."""
    # Here, not above: help and mistakes in the file need no table library.
    from spark_sink.tables.formats import FormatTables

    return FormatTables(loaded.tables.warehouse, formats=loaded.tables.formats, catalog=loaded.iceberg_catalog)


def configured(path: Path) -> settings.Settings:
    """Return the settings of a file; from now on this process finds their object store.

    Raises:
        ConfigError: see cdc_core.config.
    """
    loaded = settings.load(path)
    loaded.storage.enter(loaded.tables.warehouse, os.environ)
    return loaded
