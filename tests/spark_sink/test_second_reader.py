"""Spark's own Avro reader, by the whole committed schema, for the whole corpus: the snippets of docs/reading.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_micros

from cdc_core.envelope import ChangeEvent, position
from tests.repository.pages import ROOT, blocks, page, run, section
from tests.spark_sink.changes import record
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import UPDATE

TIMES = ("ts_commit_us", "ts_capture_us", "ts_origin_us")

Decoded = Callable[[Iterable[bytes]], DataFrame]


@pytest.fixture
def decoded(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Decoded:
    """Values to what the page's function makes of them, in their order."""
    monkeypatch.chdir(ROOT)
    (snippet,) = blocks(section(page("reading.md"), "Spark"), "python")
    function = run(snippet)["decoded"]

    def read(values: Iterable[bytes]) -> DataFrame:
        rows = [(bytearray(value),) for value in values]
        result: DataFrame = function(spark.createDataFrame(rows, "value binary").coalesce(1))
        return result

    return read


def test_corpus(decoded: Decoded) -> None:
    """Every field of every event, the times to the microsecond, those beyond the dates of Python too."""
    micros = {name: unix_micros(name) for name in TIMES}
    read = decoded(map(record, CORPUS.values()))
    assert ["timestamp"] * 3 == [read.schema[name].dataType.simpleString() for name in TIMES]
    found = [row.asDict(recursive=True) for row in read.withColumns(micros).collect()]
    for name, event, row in zip(CORPUS, CORPUS.values(), found, strict=True):
        assert msgspec.to_builtins(event) == row, name


def test_another_schema(decoded: Decoded) -> None:
    """What has another header is null in every field, and its neighbours are read."""
    values = [record(UPDATE), b"\x00\x00\x00\x00\x01" + record(UPDATE)[10:], b'{"v":1}', b"", record(UPDATE)]
    assert ["row", None, None, None, "row"] == [row.kind for row in decoded(values).collect()]


def test_images(spark: SparkSession, decoded: Decoded) -> None:
    """The SQL of the page opens the images, and tells null from absent."""
    images = ['{"id":1,"price":"12.50"}', '{"id":2,"price":null}', '{"id":3}']
    events = [_row(n, image, unavailable) for n, (image, unavailable) in enumerate(zip(images, WITHHELD, strict=True))]
    decoded(map(record, events)).createOrReplaceTempView("events")
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
