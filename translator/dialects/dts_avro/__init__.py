"""Alibaba DTS, record format in bare Avro: written by the change tracking service and by DTS tasks to Kafka.

Bytes go through `reader` (`scan`, `schema`); `decode` finds operation and images; `layout` knows, per table, how each
column is read (`types`); `values`, `times`, `wkb` and `charsets` read the cells.
"""

from translator.dialects.dts_avro.decode import DtsAvro

__all__ = ["DtsAvro"]
