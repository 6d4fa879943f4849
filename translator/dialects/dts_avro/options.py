"""Options for a source with this dialect."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Options(Struct, frozen=True):
    """Options of `dts_avro` (docs/dialects/dts_avro.md)."""

    fraction_unit: Literal["auto", "micros", "nanos"] = "auto"
    """The unit of `DateTime.millis`. With auto, the source type and the position determine the unit."""
    unique_key_as_key: bool = False
    """If a table has no primary key, use its first unique key. The columns of that key may be null."""
    logical_names: bool = False
    """For sharded sources: use the database and table in the tags l_db_name and l_tb_name instead of the physical
    names.
    """
    transactions: bool = False
    """Write the beginning and end of each transaction as `tx` events. If false, the markers are skipped and counted."""
    extras: bool = False
    """Keep the record's id, transaction id, recovery position and all tags in the event's `ext`."""
