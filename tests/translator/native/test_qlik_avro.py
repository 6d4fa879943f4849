"""Qlik's Avro in the envelope: native records match those of the plain path, byte for byte."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.generators import generate
from bench.generators.history import StreamSpec
from tests.sizes import examples
from tests.translator.dialects.qlik import avro
from tests.translator.native import needs_extension, qlik_mutants
from tests.translator.native.canal_mutants import damaged
from tests.translator.native.misspellings import one_in_avro
from tests.translator.native.test_equality import agree, opened_path
from tests.translator.native.test_qlik import at
from translator.dialects import build
from translator.message import Learned, Message, Setup
from translator.translation.native_path import NativePath
from translator.translation.translate import Translator

pytestmark = needs_extension

SMALL, LARGE = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
EDGES = st.builds(
    lambda year, edge: (date(year, *edge) - date(1970, 1, 1)).days,
    st.integers(1, 9999),
    st.sampled_from(((1, 1), (2, 28), (3, 1), (12, 30), (12, 31))),
)
"""Days around the ends of months and years of all lengths, since 1970."""
TIMES = st.integers(-(10**16), 10**16) | st.integers(-(10**6), 10**12) | LARGE
MICROS = st.builds(lambda day, unit: day * 86_400_000_000 + unit, EDGES, st.integers(-1, 1))
BYTES = st.binary(max_size=18)
DECIMAL = {"type": "bytes", "logicalType": "decimal"}
TYPES: Mapping[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "int": ("int", "int", SMALL),
    "long": ("long", "long", LARGE),
    "boolean": ("boolean", "boolean", st.booleans()),
    "double": ("double", "double", st.floats() | st.floats(-999, 999) | st.integers(-99, 99).map(float)),
    "float": ("float", "float", st.floats(width=32)),
    "string": ("string", "string", st.text(max_size=8) | st.sampled_from(("2026-01-05", "00FF", "1.50", "true"))),
    "bytes": ("bytes", "bytes", BYTES),
    "decimal(12,2)": ({**DECIMAL, "precision": 12, "scale": 2}, "bytes", BYTES | st.binary(min_size=1, max_size=4)),
    "decimal(38,0)": ({**DECIMAL, "precision": 38, "scale": 0}, "bytes", BYTES),
    "decimal(3,3)": ({**DECIMAL, "precision": 3, "scale": 3}, "bytes", st.binary(min_size=1, max_size=2)),
    "date": ({"type": "int", "logicalType": "date"}, "int", SMALL | EDGES | EDGES.map(lambda day: day + 1)),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, "int", st.integers(-10, 86_400_010)),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, "long", st.integers(-10, 86_400_000_010)),
    **{
        f"timestamp-{unit}": ({"type": "long", "logicalType": f"timestamp-{unit}"}, "long", TIMES | MICROS)
        for unit in ("millis", "micros", "nanos")
    },
    "uuid": ({"type": "string", "logicalType": "uuid"}, "string", st.text(max_size=8)),
}
"""Columns: the type as declared and without its logical type, and values."""
TOLD = (
    *({"type": name} for name in ("INT4", "INT8", "UINT8", "BOOLEAN", "STRING", "BYTES", "REAL4", "REAL8", "DATE")),
    *({"type": "NUMERIC"}, {"type": "NUMERIC", "precision": 12, "scale": 2}, {"type": "TIME"}, {"type": "DATETIME"}),
    {"type": "NCLOB"},
)
MASKS = ("big", "little")


@lru_cache(1024)
def taught(declared: str, told: int, masks: str = "big") -> tuple[Translator, NativePath]:
    """Return a path that knows the metadata of a table with one column next to its key."""
    columns = {"id": {"type": "INT4", "primaryKeyPosition": 1}, "c": TOLD[told]}
    schema = avro.data_schema({"id": "int", "c": TYPES[declared][0]})
    return opened_path(avro.taught(columns, schema, avro_masks=masks))


def value_of(declared: str, body: dict[str, Any], **envelope: Any) -> bytes:
    """Return a message of that table. The writer knows the meaning of a logical type."""
    return avro.enveloped(avro.written(avro.data_schema({"id": "int", "c": TYPES[declared][1]}), body), **envelope)


@pytest.mark.parametrize("declared", TYPES)
@examples(1)
@given(draw=st.data(), told=st.integers(0, len(TOLD) - 1), masks=st.sampled_from(MASKS))
def test_a_cell_of_a_type(declared: str, draw: st.DataObject, told: int, masks: str) -> None:
    """Both paths agree in the old and in the new row, with any type in the metadata."""
    cell = st.none() | TYPES[declared][2]
    rows = [{"id": 7, "c": draw.draw(cell)} for _ in range(2)]
    body = avro.body("UPDATE", rows[0], rows[1], changeMask=b"\x02", columnMask=b"\x03")
    became = agree(*taught(declared, told, masks), at(5, value_of(declared, body)))
    assert became in ("taken", "cell", "layout")


COMMON: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("int", {"type": "INT4"}, -7),
    ("long", {"type": "INT8"}, 2**63 - 1),
    ("boolean", {"type": "BOOLEAN"}, True),
    ("double", {"type": "REAL8"}, 1.5),
    ("string", {"type": "STRING"}, 'a "\\\n\x07\u00e9'),
    ("string", {"type": "DATETIME"}, "2026-01-05 08:00:00"),
    ("string", {"type": "BYTES"}, "00FF"),
    ("decimal(12,2)", {"type": "NUMERIC", "precision": 12, "scale": 2}, b"\xfe"),
    ("date", {"type": "DATE"}, 20_458),
    ("time-micros", {"type": "TIME"}, 1),
    ("timestamp-micros", {"type": "DATETIME"}, -1),
    ("timestamp-millis", {"type": "DATETIME"}, 1_767_600_000_123),
)


@pytest.mark.parametrize(("declared", "told", "cell"), COMMON, ids=[declared for declared, *_ in COMMON])
def test_common_cells_are_taken(declared: str, told: dict[str, Any], cell: Any) -> None:
    body = avro.body("INSERT", {"id": 7, "c": cell}, changeMask=b"\x03", columnMask=b"\x03")
    assert "taken" == agree(*taught(declared, TOLD.index(told)), at(5, value_of(declared, body)))


@pytest.mark.parametrize(
    ("declared", "number"),
    [
        *(
            ("long", n)
            for n in (b"\x80\x00", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x02", b"\xff" * 9 + b"\x7f", b"\xff" * 10)
        ),
        *(
            ("int", n)
            for n in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x1f", b"\x80" * 4 + b"\x10", b"\x81\x80\x00")
        ),
    ],
)
def test_numbers_of_any_length(declared: str, number: bytes) -> None:
    """Numbers can have more bytes than they need, or more bits than allowed."""
    body = avro.body("INSERT", {"id": 7, "c": 5}, changeMask=b"\x03", columnMask=b"\x03")
    inner = avro.written(avro.data_schema({"id": "int", "c": TYPES[declared][1]}), body)
    cell = inner.index(b"\x0e\x02\x0a") + 2
    value = avro.enveloped(inner[:cell] + number + inner[cell + 1 :])
    became = agree(*taught(declared, TOLD.index({"type": "INT8" if declared == "long" else "INT4"})), at(5, value))
    assert became in ("taken", "spelling")


def test_days_of_four_centuries() -> None:
    """This covers the first and last two days of each year, and those around the end of each February."""
    known = taught("date", TOLD.index({"type": "DATE"}))
    first = [(date(year, month, 1) - date(1970, 1, 1)).days for year in range(1600, 2001) for month in (1, 3)]
    for offset, day in enumerate(day + beside for day in first for beside in (-2, -1, 0)):
        body = avro.body("INSERT", {"id": 7, "c": day}, changeMask=b"\x03", columnMask=b"\x03")
        assert "taken" == agree(*known, at(offset, value_of("date", body)))


HEADERS: Mapping[str, tuple[Any, ...]] = {
    **{
        name: tuple(value for value in qlik_mutants.HEADERS[name] if isinstance(value, str))
        for name in ("changeSequence", "timestamp", "streamPosition", "transactionId")
    },
    "transactionEventCounter": (None, 0, -1, 2**62),
    "transactionLastEvent": (None, False),
}
MASK_BYTES = (None, None, b"", b"\x03", b"\x03", b"\x00\x03", b"\x01", b"\x02\x00", b"\x00\x02", b"\x07")
ENVELOPES = ({"schema_id": None}, {"schema_id": "x"}, {"headers": {"a": "b"}}, {"kind": "MD"}, {"schema": "x"})


def mutant_body(chance: Random) -> dict[str, Any]:
    """Return a record with a rare row, header or mask."""
    row, before = ({"id": chance.choice((7, 7, 7, 8, None)), "c": chance.choice((None, "x", "y"))} for _ in "ab")
    headers = {name: chance.choice(values) for name, values in HEADERS.items() if chance.random() < 0.1}
    headers |= {name: chance.choice(MASK_BYTES) for name in ("changeMask", "columnMask")}
    operation = chance.choice(("INSERT", "UPDATE", "UPDATE", "DELETE", "REFRESH"))
    has_before = operation == "UPDATE" and chance.random() < 0.8
    return avro.body(operation, row, before if has_before else None, **headers)


def mutant(chance: Random) -> bytes:
    """Return such a record in an envelope that can also be rare, or damaged bytes."""
    value = value_of("string", mutant_body(chance), **(chance.choice(ENVELOPES) if chance.random() < 0.05 else {}))
    way = chance.random()
    if way < 0.7:
        return value if way < 0.65 else one_in_avro(chance, value)
    return damaged(chance, value)


@pytest.mark.parametrize("masks", MASKS)
def test_both_ways_agree_on_mutants(masks: str) -> None:
    """Both paths agree with and without a Kafka key."""
    chance = Random(masks)
    known = taught("string", TOLD.index({"type": "STRING"}), masks)
    found = Counter(
        agree(*known, at(offset, mutant(chance), chance.choice((None, None, *qlik_mutants.KEYS))))
        for offset in range(16 * settings.default.max_examples)
    )
    assert found["taken"] > found.total() / 10
    assert {"shape", "spelling", "columns"} <= found.keys()


@pytest.mark.parametrize("columns", [5, 12, 60])
def test_common_messages_are_taken(columns: int) -> None:
    """The native path handles the benchmark's history with its metadata."""
    stream = generate("qlik_avro", StreamSpec(200, columns=columns))
    known: dict[str, object] = {}
    dialect = build("qlik", Setup("source", lookup=known.get), {})
    for value in stream.metadata:
        outcome = dialect.decode(Message("metadata", 0, 0, 0, None, value))
        assert isinstance(outcome, Learned)
        known[outcome.key] = dialect.learn(outcome.key, outcome.document)
    translator, path = opened_path(dialect)
    found = {agree(translator, path, at(offset, raw.value or b"")) for offset, raw in enumerate(stream.messages)}
    assert {"taken"} == found
