"""The configuration of a command: the file, and the object store that it names within reach of this process."""

from __future__ import annotations

import os
from pathlib import Path

from spark_sink.config import settings


def configured(path: Path) -> settings.Settings:
    """Return the settings of a file; from now on this process finds their object store.

    Raises:
        ConfigError: see cdc_core.config.
    """
    loaded = settings.load(path)
    loaded.storage.enter(loaded.tables.warehouse, os.environ)
    return loaded
