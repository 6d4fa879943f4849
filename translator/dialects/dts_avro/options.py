"""The options of a source of this dialect."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Options(Struct, frozen=True):
    """Options of `dts_avro` (docs/dialects/dts_avro.md)."""

    fraction_unit: Literal["auto", "micros", "nanos"] = "auto"
    """Unit of `DateTime.millis`; auto goes by source type and position."""
    unique_key_as_key: bool = False
    """A table without a primary key is keyed by its first unique key, whose columns may be null."""
    logical_names: bool = False
    """Sharded sources: the database and the table of the tags l_db_name and l_tb_name instead of the physical ones."""
    transactions: bool = False
    """Begin and end of transactions as events of kind `tx`; otherwise they are skipped and counted."""
    extras: bool = False
    """Keep the id, the transaction id, the recovery position and all tags of the record in the event's `ext`."""
