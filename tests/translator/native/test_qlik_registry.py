"""Qlik's Avro in Confluent's frame: native records match those of the plain path."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
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
from tests.translator.native.test_qlik_avro import COMMON, MASKS, TYPES, mutant_body
from translator.dialects import build
from translator.dialects.qlik.avro import open_envelope
from translator.message import DeclaredTable, Limits, Setup
from translator.translation.native_path import NativePath
from translator.translation.translate import Translator

pytestmark = needs_extension

SCHEMA = 258
"""The schema id of most records. Others begin after it."""
DECLARED = (
    *(None, "boolean", "int32", "int64", "uint64", "float32", "float64", "decimal", "decimal(12,2)", "string", "bytes"),
    *("date", "time", "timestamp", "uuid"),
)
"""The operator's declaration of a column."""


def opened(
    schemas: Mapping[int, Any], tables: tuple[DeclaredTable, ...] = (), **options: Any
) -> tuple[Translator, NativePath, dict[str, object], Callable[[int, Any], None]]:
    """Return a path that knows these registry schemas, their store, and a function that adds one."""
    known: dict[str, object] = {}
    dialect = build("qlik", Setup("source", tables=tables, lookup=known.get), options)

    def learn(number: int, schema: Any) -> None:
        key = f"registry/{number}"
        known[key] = dialect.learn(key, json.dumps(schema).encode())

    for number, schema in schemas.items():
        learn(number, schema)
    return *opened_path(dialect), known, learn


def schema_of(declared: Any, namespace: str | None = avro.NAMESPACE) -> dict[str, Any]:
    return avro.data_schema({"id": "int", "c": declared}, namespace)


def value_of(declared: str, body: dict[str, Any], number: int = SCHEMA) -> bytes:
    """Return a message of that schema. The writer knows the meaning of a logical type."""
    return avro.framed(number, avro.written(schema_of(TYPES[declared][1]), body))


@lru_cache(1024)
def typed(declared: str, told: str | None, masks: str = "big") -> tuple[Translator, NativePath]:
    """Return a path for a table with one column next to its key, with the schema's type or a declared one."""
    columns = None if told is None else {"id": "int32", "c": told}
    tables = (DeclaredTable("*", key=("id",), columns=columns),)
    translator, path, _, _ = opened({SCHEMA: schema_of(TYPES[declared][0])}, tables, avro_masks=masks)
    return translator, path


@pytest.mark.parametrize("declared", TYPES)
@examples(1)
@given(draw=st.data(), told=st.sampled_from((None, *DECLARED)), masks=st.sampled_from(MASKS))
def test_a_cell_of_a_type(declared: str, draw: st.DataObject, told: str | None, masks: str) -> None:
    """Both paths agree in the old and in the new row, with any declared type."""
    cell = st.none() | TYPES[declared][2]
    rows = [{"id": 7, "c": draw.draw(cell)} for _ in range(2)]
    body = avro.body("UPDATE", rows[0], rows[1], changeMask=b"\x02", columnMask=b"\x03")
    assert agree(*typed(declared, told, masks), at(5, value_of(declared, body))) in ("taken", "cell", "layout")


@pytest.mark.parametrize(("declared", "cell"), [(declared, cell) for declared, _, cell in COMMON])
def test_common_cells_are_taken(declared: str, cell: Any) -> None:
    body = avro.body("INSERT", {"id": 7, "c": cell}, changeMask=b"\x03", columnMask=b"\x03")
    assert "taken" == agree(*typed(declared, None), at(5, value_of(declared, body)))


BY_ID, BY_ALL, BY_OTHER, BY_NOTHING, BY_TEXT, UNKNOWN = range(300, 306)
KEY_SCHEMAS: Mapping[int, Any] = {
    BY_ID: avro.key_schema({"id": "int"}),
    BY_ALL: avro.key_schema({"c": "string", "id": "int"}),
    BY_OTHER: avro.key_schema({"nope": "int"}),
    BY_NOTHING: avro.key_schema({}),
    BY_TEXT: "string",
}
"""Schemas of Kafka keys. All but the first two are uncommon."""
NAMES = "com.attunity.queue.msg."
ASSUMED, NAMELESS, CONTROL, TOO_LONG = range(SCHEMA + 1, SCHEMA + 5)
SCHEMAS: Mapping[int, Any] = {
    SCHEMA: schema_of("string"),
    ASSUMED: schema_of("string", f"{NAMES}SHOP.ORDERS"),
    NAMELESS: schema_of("string", None),
    CONTROL: schema_of("string", f"{NAMES}task.SHOP.attrep_status"),
    TOO_LONG: schema_of("string", f"{NAMES}task.SHOP.a.b"),
    **KEY_SCHEMAS,
}
ONE_KEY = b"\0\0\0\x01\x2c\x0e"
KEYS = (
    *(avro.framed(number, b"\x0e") for number in (*KEY_SCHEMAS, UNKNOWN, SCHEMA)),
    *(ONE_KEY, ONE_KEY, ONE_KEY, ONE_KEY[:5], ONE_KEY[:4], b"\0", b"SHOP+ORDERS", b"\0\0SHOP+ORDERS"),
    *qlik_mutants.KEYS,
)
OPTIONS: Mapping[str, dict[str, Any]] = {
    "nothing": {"control_tables": "skip", "carry": ["streamPosition"]},
    "topics": {"topics": "SHOP.ORDERS", "avro_masks": "little", "untyped": "translate"},
    "key is table": {"message_key": "table"},
    "key is row": {"message_key": "primary_key", "read_as_refresh": True},
}
TABLES: Mapping[str, tuple[DeclaredTable, ...]] = {
    "nothing": (),
    "key": (DeclaredTable("*", key=("id",)),),
    "wide key": (DeclaredTable("*", key=("c", "id"), columns={"id": "int32", "c": "string"}),),
    "other key": (DeclaredTable("*", key=("nope",)),),
}


def mutant(chance: Random) -> bytes:
    """Return a record of a rare schema with a rare row, header or mask, or damaged bytes."""
    number = SCHEMA if chance.random() < 0.7 else chance.choice((*SCHEMAS, UNKNOWN))
    value = value_of("string", mutant_body(chance), number)
    way = chance.random()
    if way < 0.7:
        return value if way < 0.65 else one_in_avro(chance, value)
    return damaged(chance, value)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("declared", TABLES)
def test_both_ways_agree_on_mutants(options: str, declared: str) -> None:
    chance = Random(options + declared)
    translator, path, _, _ = opened(SCHEMAS, TABLES[declared], **OPTIONS[options])
    found = Counter(
        agree(translator, path, at(offset, mutant(chance), chance.choice((None, *KEYS))))
        for offset in range(8 * settings.default.max_examples)
    )
    assert {"layout", "spelling"} <= found.keys()
    # A key that no row has leaves all messages to the plain path.
    assert found["taken"] > found.total() / 50 or declared == "other key"


def test_short_frames_and_schemas_that_were_not_learned() -> None:
    translator, path, _, _ = opened(SCHEMAS)
    common = value_of("string", avro.body("INSERT", {"id": 7, "c": "x"}))
    for offset, value in enumerate((b"\0", common[:4], common[:5], common[1:], avro.framed(UNKNOWN, common[5:]))):
        assert agree(translator, path, at(offset, value)) != "taken"
    assert "taken" == agree(translator, path, at(9, common))


@pytest.mark.parametrize(
    ("declared", "kafka_key", "key"),
    [
        ("nothing", None, ""),
        ("nothing", ONE_KEY, ',{"id":7}'),
        ("nothing", avro.framed(BY_ALL, b"damaged"), ',{"c":"x","id":7}'),
        ("nothing", avro.framed(BY_NOTHING, b""), ""),
        ("nothing", b'{"id":7}', ',{"id":7}'),
        ("key", ONE_KEY, ',{"id":7}'),
        ("key", avro.framed(UNKNOWN, b"\x0e"), ',{"id":7}'),
        ("wide key", ONE_KEY, ',{"c":"x","id":7}'),
    ],
)
def test_what_tells_the_key(declared: str, kafka_key: bytes | None, key: str) -> None:
    """The operator decides, or else the names in the Kafka key's schema, which is awaited only if needed."""
    translator, path, _, _ = opened(SCHEMAS, TABLES[declared])
    message = at(1, value_of("string", avro.body("INSERT", {"id": 7, "c": "x"})), kafka_key)
    assert "taken" == agree(translator, path, message)
    (found,) = path.take([message])
    assert not isinstance(found, str)
    assert f'["source",null,"TSTDTA","CINMAD"{key}]'.encode() == found.outputs[0][0].key


def test_schemas_that_come_late_and_change() -> None:
    """A layout is requested until one exists, and is valid as long as both of its schemas."""
    translator, path, known, learn = opened({})
    body = avro.body("INSERT", {"id": 7, "c": "x"})
    message = at(1, value_of("string", body), ONE_KEY)
    assert ["layout"] == path.take([message])
    learn(SCHEMA, SCHEMAS[SCHEMA])
    assert ["layout"] == path.take([message])
    for key in ({"id": "int"}, {"c": "string"}, {"id": "int", "c": "string"}):
        learn(BY_ID, avro.key_schema(key))
        assert "taken" == agree(translator, path, message)
    for namespace in (f"{NAMES}task.A.B", f"{NAMES}other.A.B", f"{NAMES}task.A.C"):
        learn(SCHEMA, schema_of("string", namespace))
        assert "taken" == agree(translator, path, message)
    del known[f"registry/{BY_ID}"]
    assert ["layout"] == path.take([message])


@pytest.mark.parametrize("columns", [5, 12, 60])
def test_common_messages_are_taken(columns: int) -> None:
    """The native path handles the benchmark's history as a task with a registry writes it."""
    stream = generate("qlik_avro", StreamSpec(200, columns=columns))
    told = json.loads(stream.metadata[0])["message"]
    key, *_ = told["tableStructure"]["tableColumns"]
    schema = json.loads(told["dataSchema"]) | {"namespace": avro.NAMESPACE}
    translator, path, _, _ = opened({SCHEMA: schema, BY_ID: avro.key_schema({key: "long"})})
    values = [avro.framed(SCHEMA, open_envelope(raw.value or b"", Limits()).message) for raw in stream.messages]
    assert {agree(translator, path, at(*numbered, ONE_KEY)) for numbered in enumerate(values)} == {"taken"}
