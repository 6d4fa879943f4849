"""Readers that share no code with the writer decode the whole Avro corpus to the same values, field by field.

tests/spark_sink/test_second_reader.py tests Spark's reader with the session of those tests.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import msgspec
import pytest

from cdc_core import envelope
from cdc_core.envelope import ChangeEvent, avro_schema
from cdc_core.position import position
from cdc_core.reader import ChangeReader, DictStore, TableId, apply
from dev.demo.sources import shop_sources
from dev.java import find_java
from tests.cdc_core.reader.sources import FORMS, translated
from tests.cdc_core.reader.sources import value_of as form
from tests.cdc_core.reader.test_apply import event_of
from tests.repository.pages import DOCS, blocks, page, section
from tests.spark_sink.histories import history
from tests.spark_sink.key_shifts import shifts
from tests.translator.codecs.corpus import CORPUS, WITHIN_DATES
from tests.translator.examples import BLANK
from translator.codecs.avro import HEADER, AvroCodec

TIMES = ("ts_commit_us", "ts_capture_us", "ts_origin_us")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def value_of(event: ChangeEvent) -> bytes:
    (record,) = AvroCodec().encode(event)
    assert record.value is not None
    return record.value


def _by_reference(event: ChangeEvent, schema: str) -> Any:
    """Return what the Apache project's `avro` package reads, to the last byte."""
    datum = io.BytesIO(value_of(event).removeprefix(HEADER))
    read = avro.io.DatumReader(avro.schema.parse(schema)).read(avro.io.BinaryDecoder(datum))
    assert b"" == datum.read()
    return read


class TestPython:
    @pytest.mark.parametrize("name", CORPUS)
    def test_values(self, name: str) -> None:
        """Every field has its value, and the datum ends where the reader ends."""
        assert msgspec.to_builtins(CORPUS[name]) == _by_reference(CORPUS[name], json.dumps(avro_schema(logical=False)))

    @pytest.mark.parametrize("name", WITHIN_DATES)
    def test_times(self, name: str) -> None:
        """With the committed schema, times are read exactly to the microsecond."""
        read = _by_reference(CORPUS[name], envelope.SCHEMA_FILE.read_text())
        for field in TIMES:
            expected = getattr(CORPUS[name], field)
            assert expected == (read[field] and (read[field] - EPOCH) // MICROSECOND), field


JARS = Path(importlib.util.find_spec("pyspark").submodule_search_locations[0]) / "jars"  # type: ignore[union-attr,index]


OTHER_FINGERPRINT = b"\xc3\x01" + bytes(8) + value_of(CORPUS["u"]).removeprefix(HEADER)


def _java(program: Path, values: Iterable[bytes]) -> subprocess.CompletedProcess[str]:
    """Run a Java program from source with Janino, which comes with Spark, because a JRE has no compiler."""
    command = [find_java().executable, "-cp", f"{JARS}/*", "org.codehaus.janino.SimpleCompiler"]
    command += [program, program.stem, envelope.SCHEMA_FILE]
    lines = "".join(base64.b64encode(value).decode() + "\n" for value in values)
    return subprocess.run(
        list(map(str, command)), input=lines, capture_output=True, encoding="utf-8", check=False, timeout=120
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Run the program of docs/reading.md on the corpus, and finally on a value of another schema, which ends it."""
    (program,) = blocks(section(page("reading.md"), "Java"), "java")
    source = tmp_path_factory.mktemp("java") / "ReadEvents.java"
    source.write_text(program, encoding="utf-8")
    return _java(source, [*map(value_of, CORPUS.values()), OTHER_FINGERPRINT])


class TestJava:
    def test_corpus(self, ran: subprocess.CompletedProcess[str]) -> None:
        """Apache Avro for Java reads every event correctly."""
        read = [json.loads(line) for line in ran.stdout.splitlines()]
        assert len(CORPUS) == len(read), ran.stderr
        for name, event, found in zip(CORPUS, CORPUS.values(), read, strict=True):
            assert msgspec.to_builtins(event) == found, name

    def test_another_schema(self, ran: subprocess.CompletedProcess[str]) -> None:
        """A value with another fingerprint is rejected and not misread."""
        assert 0 != ran.returncode
        assert "MissingSchemaException" in ran.stderr

    def test_rows(self) -> None:
        """docs/ReadChanges.java follows the rules and ends with the rows of the Python reader."""
        values = [*_shops(), *_histories(), *_key_shifts(), *_by_hand()]
        store = DictStore()
        apply(map(ChangeReader().read, values), store)
        expected = [_row(table, row) for table in store.tables() for row in store.rows(table).values()]
        ran = _java(DOCS / "ReadChanges.java", values)
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert sorted(expected) == sorted(_row(TableId(*row["table"]), row["row"]) for row in found), ran.stderr


def _shops() -> Iterator[bytes]:
    """Return the demo shops in all forms, with the middle of each repeated."""
    for source in shop_sources(2024):
        events, codecs = translated(source, source.messages(150, grow=True)), [make() for make in FORMS.values()]
        values = [form(codecs[n % len(codecs)], *event) for n, event in enumerate(events)]
        yield from (*values[:90], *values[60:])


def _key_shifts() -> Iterator[bytes]:
    """Return transactions that move keys over each other, identified or not, with duplicates."""
    for made in map(shifts, range(200)):
        for event in (event for batch in made.batches for event in batch):
            yield value_of(msgspec.structs.replace(event_of(event), table=f"shifts{made.seed}"))


def _histories() -> Iterator[bytes]:
    """Return random histories with truncates, partial images, key changes and many duplicates."""
    for made in map(history, range(150)):
        if not made.native:
            for event in (event for batch in made.batches for event in batch):
                yield value_of(msgspec.structs.replace(event_of(event), table=made.table))


def _by_hand() -> Iterator[bytes]:
    """Return a full image that lacks a column, and events from before a truncate of an unknown row."""
    told = [
        ("c", 1, '{"id":1,"a":1,"b":1}', 1),
        ("u", 1, '{"id":1,"a":2}', 2),
        ("c", 2, '{"id":2}', 3),
        ("t", None, None, 6),
        ("c", 3, '{"id":3}', 5),
        ("c", 4, '{"id":4,"a":1,"b":1}', 7),
        ("u", 4, '{"id":4,"a":2}', 8),
    ]
    for op, id, after, pos in told:
        blank = msgspec.structs.replace(BLANK, kind="row", op=op, table="by hand", pos=position(pos, 0))
        key, state = None if id is None else f'{{"id":{id}}}', "none" if after is None else "full"
        yield value_of(msgspec.structs.replace(blank, key=key, after=after, after_state=state))


def _row(table: TableId, row: Mapping[str, object]) -> str:
    return f"{table} {json.dumps(row, sort_keys=True)}"
