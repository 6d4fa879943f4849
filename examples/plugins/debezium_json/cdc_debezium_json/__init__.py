"""Debezium's JSON envelope, with or without schemas, as a dialect of CDC Translator."""

from cdc_debezium_json.decode import PLUGIN

__all__ = ["PLUGIN"]
