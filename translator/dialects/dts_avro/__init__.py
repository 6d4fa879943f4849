"""Alibaba DTS, record format in bare Avro: written by the change tracking service and by DTS tasks to Kafka.

Bytes go through `reader` (`front`, `tables`, `patterns`, `cells`) to a `record`, in which a value is still its bytes;
what is none, `refusal` names (`scan`, `schema`). `decode` tells the kinds of records apart: `rows`, `statement`, marks.
`layout` knows, per table, how each column is read (`types`, `kinds`); `quick`, `quick_times` and `bare` read the usual
values, `values`, `times`, `wkb` and `charsets` all of them. `native_rows` is what the native path asks.
"""

from translator.dialects.dts_avro.decode import DtsAvro

__all__ = ["DtsAvro"]
