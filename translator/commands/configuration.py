"""The `-c` option for every command that needs the configuration."""

from __future__ import annotations

from cdc_core import command_line

# The defaults for -c are this environment variable, then this file in the working directory.
VARIABLE, FILE = "CDC_TRANSLATOR_CONFIG", "translator.yaml"

config_option = command_line.config_option(FILE, VARIABLE)
