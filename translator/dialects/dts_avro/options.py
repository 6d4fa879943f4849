"""The options of a source of this dialect."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Options(Struct, frozen=True):
    """Options of `dts_avro` (docs/dialects/dts_avro.md)."""

    fraction_unit: Literal["auto", "micros", "nanos"] = "auto"
    """The unit of `DateTime.millis`. auto determines it from the source type and the position."""
    unique_key_as_key: bool = False
    """Use the first unique key as the key of a table without a primary key. Its columns can be null."""
    logical_names: bool = False
    """For sharded sources: use database and table of the tags l_db_name and l_tb_name instead of the physical ones."""
    transactions: bool = False
    """Write begin and end of transactions as events of kind `tx`. Otherwise they are skipped and counted."""
    extras: bool = False
    """Keep the id, the transaction id, the recovery position and all tags of the record in the event's `ext`."""
