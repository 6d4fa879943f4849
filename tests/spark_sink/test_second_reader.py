"""Spark's own Avro reader decodes the whole corpus with the full schema, as docs/reading.md recommends for Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_micros

from cdc_core.envelope import ChangeEvent
from cdc_core.position import position
from cdc_core.reader.spark import decoded
from dev.servers.broker import Broker
from tests.cdc_core.reader.sources import value_of
from tests.repository.pages import blocks, page, run, section
from tests.spark_sink.changes import record
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import UPDATE
from translator.codecs.avro import AvroCodec, confluent_header

TIMES = ("ts_commit_us", "ts_capture_us", "ts_origin_us")

Decoded = Callable[[Iterable[bytes]], DataFrame]


@pytest.fixture
def read(spark: SparkSession) -> Decoded:
    """Return what the package decodes from the values, in order."""

    def read(values: Iterable[bytes]) -> DataFrame:
        rows = [(bytearray(value),) for value in values]
        return decoded(spark.createDataFrame(rows, "value binary").coalesce(1))

    return read


@pytest.mark.parametrize("codec", [AvroCodec(), AvroCodec(confluent_header(7))], ids=["single-object", "Confluent"])
def test_corpus(read: Decoded, codec: AvroCodec) -> None:
    """Every field of every event is right, including times to the microsecond and beyond Python's range."""
    micros = {name: unix_micros(name) for name in TIMES}
    events = [msgspec.structs.replace(event, v=1) for event in CORPUS.values()]
    opened = read(value_of(codec, event) for event in events)
    assert ["timestamp"] * 3 == [opened.schema[name].dataType.simpleString() for name in TIMES]
    found = [row.asDict(recursive=True) for row in opened.withColumns(micros).collect()]
    for name, event, row in zip(CORPUS, events, found, strict=True):
        assert msgspec.to_builtins(event) | {"undecoded": None} == row, name


def test_another_form(read: Decoded) -> None:
    """A value with another header is null in every field and keeps its bytes. Its neighbours are read."""
    values = [record(UPDATE), b"\x00\x00\x00\x00\x01\x04" + record(UPDATE)[11:], b'{"v":1}', b"", record(UPDATE)]
    found = [(row.kind, row.undecoded) for row in read(values).collect()]
    assert [("row", None), *((None, bytearray(value)) for value in values[1:4]), ("row", None)] == found


def test_from_kafka(broker: Broker, spark: SparkSession) -> None:
    """The snippet of the page reads a topic, including the position of each record."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("cdc.canonical.read", 1, 1)])["cdc.canonical.read"].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (record(UPDATE), b"{}"):
        producer.produce("cdc.canonical.read", value)
    producer.flush()
    (snippet, *_) = blocks(section(page("reading.md"), "Spark"), "python")
    events = run(snippet.replace('"cdc.canonical"', '"cdc.canonical.read"'))["events"]
    found = [(row.offset, row.id, row.undecoded) for row in events(spark, broker.bootstrap).orderBy("offset").collect()]
    assert [(0, UPDATE.id, None), (1, None, bytearray(b"{}"))] == found


def test_images(spark: SparkSession, read: Decoded) -> None:
    """The SQL of the page parses the images and distinguishes null from absent."""
    images = ['{"id":1,"price":"12.50"}', '{"id":2,"price":null}', '{"id":3}']
    events = [_row(n, image, unavailable) for n, (image, unavailable) in enumerate(zip(images, WITHHELD, strict=True))]
    read(map(record, events)).createOrReplaceTempView("events")
    (query,) = blocks(section(page("reading.md"), "Spark"), "sql")
    rows = [(row.order_id, row.price, row.sent, row.photo_withheld) for row in spark.sql(query).collect()]
    assert [
        (1, Decimal("12.50"), ["id", "price"], False),
        (2, None, ["id", "price"], True),
        (3, None, ["id"], False),
    ] == rows


WITHHELD = (None, ["photo"], ["other"])


def _row(n: int, after: str, unavailable: list[str] | None) -> ChangeEvent:
    key = json.dumps({"id": n + 1})
    return msgspec.structs.replace(UPDATE, pos=position(n, 0), key=key, after=after, unavailable=unavailable)
