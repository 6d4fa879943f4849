"""Read Alibaba DTS records in bare Avro, as the change tracking service and DTS tasks write them to Kafka.

`reader` (with `front` and `cells`) turns bytes into a `record` whose values are still bytes. `refusal` (with `scan`,
`schema`) describes bytes that are not a record. `decode` distinguishes the record types: rows (`rows`), statements
(`statement`) and markers. For each table, `layout` determines how to read each column (`types`, `kinds`). `fast_path`
and `fast_times` read the usual values. `values`, `times`, `wkb` and `charsets` can read every value. `native_rows`
supports the native path.
"""

from translator.dialects.dts_avro.decode import DtsAvro

__all__ = ["DtsAvro"]
