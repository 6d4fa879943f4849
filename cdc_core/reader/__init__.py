"""Read the canonical topic: convert its records to changes, and apply these to rows (docs/reading.md).

    reader = ChangeReader(schemas)
    apply((reader.read(record.value()) for record in records), store)

The reader requires msgspec and fastavro. `cdc_core.reader.spark` reads the topic as a DataFrame.
"""

from cdc_core.reader.apply import AppliedChanges, RowStore, apply
from cdc_core.reader.change import Change, Missing, RowKey, RowValues
from cdc_core.reader.decode import ChangeReader, decode
from cdc_core.reader.dict_store import DictStore
from cdc_core.reader.errors import ApplyError, ReadError, UnknownSchema
from cdc_core.reader.kept_row import KeptRow, RowProgress
from cdc_core.reader.known_schemas import KnownSchemas
from cdc_core.reader.sql_store import SQLITE, SqlDialect, SqlStore
from cdc_core.reader.values import ExactText, Value, canonical_text
from cdc_core.table_id import TableId

__all__ = [
    "SQLITE",
    "AppliedChanges",
    "ApplyError",
    "Change",
    "ChangeReader",
    "DictStore",
    "ExactText",
    "KeptRow",
    "KnownSchemas",
    "Missing",
    "ReadError",
    "RowKey",
    "RowProgress",
    "RowStore",
    "RowValues",
    "SqlDialect",
    "SqlStore",
    "TableId",
    "UnknownSchema",
    "Value",
    "apply",
    "canonical_text",
    "decode",
]
