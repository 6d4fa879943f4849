"""Decode records to envelopes: both headers, and values that are not envelopes."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_core import wire_format
from cdc_core.envelope import ChangeEvent, avro_schema
from spark_sink.events.source import decoded
from tests.spark_sink.changes import change, record, schema_of, withholds
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import UPDATE
from translator.codecs.avro import HEADER, AvroCodec, confluent_header

IDS = (1, 7, 2**31 - 1)

EVENTS = [
    change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema_of({"id": "int64", "a": "string"})),
    change("u", {"id": 2}, {"a": None}, key_old={"id": 1}, pos=2, full=False, unavailable=["b"]),
    change("d", {"id": 2}, pos=3, issues=["a"]),
    change(None, None, pos=4, kind="watermark", table=None),
    *CORPUS.values(),
]

DATUM = record(UPDATE)[len(HEADER) :]
SOME_ID = confluent_header(7)

# Value -> expected `kind`.
FIRST_BYTES: dict[str, tuple[bytes | None, str | None]] = {
    "single-object": (HEADER + DATUM, "row"),
    "confluent": (SOME_ID + DATUM, "row"),
    "confluent, with fields of a newer release": (SOME_ID + DATUM + b"\x00\x02\x0anewer", "row"),
    "confluent, of an older release": (SOME_ID + DATUM[:-1], None),
    "single-object of another schema": (b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08" + DATUM, None),
    "single-object marker in another version": (b"\xc3\x02" + HEADER[2:] + DATUM, None),
    "header without datum": (HEADER, None),
    "id without datum": (SOME_ID, None),
    "id cut off": (b"\x00\x00\x00", None),
    "envelope of version 2": (SOME_ID + b"\x04" + DATUM[1:], None),
    "another schema of the registry": (SOME_ID + b"\x02\x08text", None),
    "a length beyond the value": (SOME_ID + b"\x02\xfe\xff\xff\xff\x0f" + DATUM, None),
    "JSON": (b'{"v":1}', None),
    "datum alone": (DATUM, None),
    "unknown first byte": (b"\x01\x00\x00\x00\x07" + DATUM, None),
    "empty": (b"", None),
    "tombstone": (None, None),
}


def rows(spark: SparkSession, values: list[bytes | None]) -> list[dict[str, Any]]:
    """Return the decoded records by offset, without their original bytes."""
    columns = {
        "partition": pa.array([0] * len(values), pa.int32()),
        "offset": pa.array(range(len(values)), pa.int64()),
        "value": pa.array(values, pa.binary()),
    }
    found = decoded(spark.createDataFrame(pa.table(columns)), "table").orderBy("offset").drop("value")
    return [row.asDict() for row in found.collect()]


def framed(event: ChangeEvent, schema_id: int) -> bytes:
    (written,) = AvroCodec(confluent_header(schema_id)).encode(event)
    assert written.value is not None
    return written.value


@pytest.mark.parametrize("schema_id", IDS)
def test_both_headers_give_the_same_rows(spark: SparkSession, schema_id: int) -> None:
    """With and without a registry and for any schema id, every field of every event is the same."""
    plain = rows(spark, [record(event) for event in EVENTS])
    assert [event.kind for event in EVENTS] == [row["kind"] for row in plain]
    assert plain == rows(spark, [framed(event, schema_id) for event in EVENTS])


def test_columns_that_are_withheld(spark: SparkSession) -> None:
    """A new row withholds the listed columns, an update those that may have changed and have no value."""
    wanted = [
        (change("c", {"id": 1}, {"a": 1}, pos=1), False),
        (change("c", {"id": 1}, {}, pos=1, full=False, unavailable=["a"]), True),
        (change("r", {"id": 1}, {"a": 1}, pos=1, full=False, issues=["b"]), True),
        (change("u", {"id": 1}, {"a": 1}, pos=1, full=False), False),
        (change("u", {"id": 1}, {}, pos=1, full=False, unavailable=["a"]), True),
        (change("u", {"id": 1}, {}, pos=1, full=False, unavailable=["a"], changed=["b", "a"]), True),
        (change("u", {"id": 1}, {"b": 1}, pos=1, full=False, unavailable=["a"], changed=["b"]), False),
        (change("u", {"id": 1}, {"b": 1}, pos=1, full=False, unavailable=["a"], changed=[]), False),
        (change("u", {"id": 1}, {}, pos=1, full=False, issues=["a"]), True),
        (change("u", {"id": 1}, {'a"\u00e9': None}, pos=1, full=False, issues=['a"\u00e9']), False),
        (change("u", {"id": 1}, {"a": 1}, pos=1, full=False, unavailable=["b"], issues=["a"]), True),
        (change("u", {"id": 1}, {"a": 1}, pos=1, full=False, unavailable=["b"], issues=["a"], changed=["a"]), False),
        (change("u", {"id": 1}, None, pos=1, unavailable=["b"]), True),
        (change("d", {"id": 1}, pos=1), False),
    ]
    found = [row["withholds"] for row in rows(spark, [record(event) for event, _ in wanted])]
    assert [answer for _, answer in wanted] == found == [withholds(event) for event, _ in wanted]


def test_first_bytes(spark: SparkSession) -> None:
    """A value that is not an envelope of version 1 has no kind and is quarantined. Its neighbours are read."""
    found = rows(spark, [value for value, _ in FIRST_BYTES.values()])
    wanted = {name: kind for name, (_, kind) in FIRST_BYTES.items()}
    assert wanted == dict(zip(FIRST_BYTES, (row["kind"] for row in found), strict=True))


def test_records_travel_where_they_are_asked_for(spark: SparkSession) -> None:
    """The raw record is kept for the given routes and for undecodable values. Other kinds do not need it."""
    kinds = {kind: record(msgspec.structs.replace(UPDATE, kind=kind)) for kind in ("row", "watermark")}
    values = [*kinds.values(), b"{}", None]
    columns = {
        "partition": pa.array([0] * 4, pa.int32()),
        "offset": pa.array(range(4)),
        "value": pa.array(values, pa.binary()),
    }
    records = spark.createDataFrame(pa.table(columns))

    def carried(*routes: str) -> list[bytes | None]:
        return [row.value for row in decoded(records, "table", carried=routes).orderBy("offset").collect()]

    assert [None, None, b"{}", None] == carried() == carried("another")
    assert [kinds["row"], None, b"{}", None] == carried(UPDATE.table or "")


def test_python_opens_what_spark_opens(spark: SparkSession) -> None:
    """The quarantine, which extracts the event's id, and Spark agree where the datum begins."""
    values = [value for value, _ in FIRST_BYTES.values() if value is not None]
    opened = spark.createDataFrame(pa.table({"value": pa.array(values, pa.binary())})).selectExpr(wire_format.DATUM_SQL)
    assert [wire_format.datum(value) for value in values] == [row[0] for row in opened.coalesce(1).collect()]


def test_a_newer_envelope(spark: SparkSession) -> None:
    """A record with an additional field, from a later release with another schema id, gives the same row."""
    schema = avro_schema(logical=False)
    field = {"name": "later", "type": ["null", "string"], "default": None}
    newer = fastavro.parse_schema(json.loads(json.dumps({**schema, "fields": [*schema["fields"], field]})))
    event = fastavro.schemaless_reader(io.BytesIO(DATUM), fastavro.parse_schema(schema), None)
    assert isinstance(event, dict)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, newer, {**event, "later": "x"})
    assert rows(spark, [SOME_ID + DATUM]) == rows(spark, [confluent_header(8) + out.getvalue()])
