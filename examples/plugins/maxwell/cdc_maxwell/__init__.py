"""Maxwell's JSON as a dialect of CDC Translator."""

from cdc_maxwell.decode import PLUGIN

__all__ = ["PLUGIN"]
