"""The law of the native path for Qlik: for messages that it handles, it writes what the plain path writes."""

import json
from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.native import needs_extension, qlik_mutants
from tests.translator.native.canal_mutants import Body
from tests.translator.native.test_cells import CLOCKS, NUMBERS, TIMES
from tests.translator.native.test_equality import agree, opened_path
from translator import _native
from translator.dialects import build
from translator.dialects.qlik import Qlik
from translator.message import DeclaredTable, Learned, Message, Setup
from translator.translation.native_path import NativePath
from translator.translation.translate import Translator

pytestmark = needs_extension

NAMED = {"topics": "SHOP.ORDERS"}
COLUMNS = {"id": "int32", "name": "string", "price": "decimal(12,2)", "at": "timestamp", "ratio": "float64"}
ALL_COLUMNS = COLUMNS | {"day": "date", "flag": "boolean", "raw": "string", "big": "uint64", "any": "decimal"}
DECLARED: dict[str, tuple[DeclaredTable, ...]] = {
    "nothing": (),
    "key": (DeclaredTable("*", key=("id",)),),
    "some columns": (DeclaredTable("SHOP.*", columns=COLUMNS),),
    "all columns": (DeclaredTable("SHOP.*", key=("name", "id"), columns=ALL_COLUMNS),),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "topics": NAMED,
    "named by message": {"carry": ["externalSchemaId", "streamPosition"], "control_tables": "skip"},
    "named by key": {"message_key": "table", "untyped": "translate", "control_tables": "skip"},
    "untyped": {**NAMED, "untyped": "translate", "numeric_timestamp": "micros"},
    "read": {**NAMED, "read_as_refresh": True, "message_key": "primary_key", "carry": ["streamPosition"]},
}


def at(offset: int, value: bytes, key: bytes | None = None) -> Message:
    """Return a message of a partition."""
    return Message("raw.x", 3, offset, 1_767_600_000_123, key, value, topic_id="abc")


def learn(dialect: Qlik, known: dict[str, object], body: Body) -> None:
    """Teach the lookup the metadata of a message."""
    outcome = dialect.decode(at(0, json.dumps(body).encode()))
    assert isinstance(outcome, Learned)
    known[outcome.key] = dialect.learn(outcome.key, outcome.document)


def taught(
    tables: tuple[DeclaredTable, ...] = (), **options: Any
) -> tuple[Translator, NativePath, dict[str, object], Qlik]:
    """Return a path with known metadata, and the place where they are stored."""
    known: dict[str, object] = {}
    dialect = build("qlik", Setup("source", tables=tables, lookup=known.get), options)
    assert isinstance(dialect, Qlik)
    for body in qlik_mutants.metadata():
        learn(dialect, known, body)
    return *opened_path(dialect), known, dialect


TAUGHT = taught(**NAMED) if _native.absence() is None else None


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("declared", DECLARED)
def test_both_ways_agree_on_mutants(options: str, declared: str) -> None:
    translator, path, _, _ = taught(DECLARED[declared], **OPTIONS[options])
    messages = qlik_mutants.messages(Random(options + declared))
    found = Counter(
        agree(translator, path, at(offset, *message))
        for offset, message in enumerate(islice(messages, 8 * settings.default.max_examples))
    )
    # Some messages are handled and some are not. Otherwise the test would prove nothing.
    assert found["taken"] > found.total() / 20
    assert {"shape", "columns", "cell"} <= found.keys()


@pytest.mark.parametrize("options", OPTIONS)
def test_common_messages_are_taken(options: str) -> None:
    """Exceptions are messages with missing metadata or a NULL in the key."""
    chance = Random(options)
    translator, path, _, _ = taught(DECLARED["key"], **OPTIONS[options])
    found: Counter[tuple[bool, str]] = Counter()
    for offset in range(200):
        body = qlik_mutants.common(chance)
        named = body.get("messageSchemaId") in qlik_mutants.IDS or "topics" in OPTIONS[options]
        value = qlik_mutants.spelled(chance, body)
        became = agree(translator, path, at(offset, value, qlik_mutants.TABLE_KEY))
        waits = qlik_mutants.UNKNOWN_ID.encode() in value
        found[waits, became if named or became != "layout" else "taken"] += 1
    assert found[False, "taken"] > found.total() / 2
    assert {became for waits, became in found if not waits} <= {"taken", "columns", "key"}


def body_of(data: dict[str, Any], before: dict[str, Any] | None = None, **headers: Any) -> bytes:
    """Return an update of the table with metadata, or the event that the headers state."""
    message = {"data": data, "beforeData": before, "headers": {"operation": "UPDATE", **headers}}
    return json.dumps(qlik_mutants.enveloped(message, qlik_mutants.IDS[0])).encode()


def test_old_nulls_that_the_mask_disproves_are_left() -> None:
    """Nulls that the mask does not contradict are handled."""
    translator, path, _, _ = taught()
    row = {"id": 7, "name": "b", "price": "1.50"}
    old = {"id": 7, "name": None, "price": None}
    for mask, became in (("0002", "columns"), ("0006", "taken")):
        assert became == agree(translator, path, at(1, body_of(row, old, changeMask=mask, columnMask="03FF")))


@pytest.mark.parametrize(("mask", "became"), [("00", "columns"), ("20", "taken")])
def test_old_nulls_of_a_table_with_a_lob(mask: str, became: str) -> None:
    """Its `price` has ordinal 6, and its LOB `name` has no bit."""
    translator, path, _, _ = taught()
    row = {"id": 7, "name": "b", "price": "1.50"}
    body = json.loads(body_of(row, row | {"price": None}, changeMask=mask))
    body["messageSchemaId"] = qlik_mutants.IDS[1]
    assert became == agree(translator, path, at(1, json.dumps(body).encode()))


@pytest.mark.parametrize(("counter", "became"), [(0, "shape"), (1, "taken"), (-1, "shape")])
def test_counter_of_zero(counter: int, became: str) -> None:
    """A counter of zero is left to the plain path."""
    translator, path, _, _ = taught()
    body = body_of({"id": 7}, transactionId="60008", transactionEventCounter=counter)
    assert became == agree(translator, path, at(1, body))


@pytest.mark.parametrize(("number", "became"), [("9" * 18, "taken"), ("-" + "9" * 18, "taken"), ("9" * 19, "spelling")])
def test_the_longest_number_in_an_image_that_is_not_used(number: str, became: str) -> None:
    """The native path handles up to 18 digits. Whether a longer number is valid JSON is left to the plain path."""
    translator, path, _, _ = taught()
    row = {"id": 7, "name": "b", "price": "1.50"}
    body = body_of(row | {"id": int(number)}, row, operation="DELETE")
    assert became == agree(translator, path, at(1, body))


def test_a_table_with_a_type_that_is_not_known_is_left() -> None:
    """Its events have a note and are otherwise normal."""
    translator, path, _, _ = taught()
    body = json.loads(body_of({"id": 7, "price": "1.50", "raw": "FF"}))
    body["messageSchemaId"] = qlik_mutants.UNKNOWN_TYPE_ID
    assert "layout" == agree(translator, path, at(1, json.dumps(body).encode()))


def test_metadata_that_come_late_and_change() -> None:
    """A layout is requested until one exists, and is valid as long as its metadata."""
    translator, path, known, dialect = taught()
    learned = dict(known)
    known.clear()
    message = at(1, body_of({"id": 7, "price": "1.50", "raw": "FF"}))
    assert ["layout"] == path.take([message])
    known |= learned
    assert "taken" == agree(translator, path, message)
    (body, *_) = qlik_mutants.metadata()
    columns = body["message"]["tableStructure"]["tableColumns"]
    columns["price"] |= {"scale": 4}
    columns["raw"] |= {"type": "STRING"}
    learn(dialect, known, body)
    (found,) = path.take([message])
    assert not isinstance(found, str)
    assert b'"price":"1.5000","raw":"FF"' in found.outputs[0][0].value
    assert "taken" == agree(translator, path, message)
    known.clear()
    assert ["layout"] == path.take([message])


@pytest.mark.parametrize(("letters", "became"), [(500, "taken"), (600, "layout")])
def test_a_name_that_is_too_long_is_left_to_the_plain_path(letters: int, became: str) -> None:
    """Names come from messages, so their length is bounded."""
    translator, path, _, _ = taught()
    message = {"data": {"id": 7}, "headers": {"operation": "REFRESH", "table": "T" * letters}}
    assert agree(translator, path, at(1, json.dumps(message).encode())) == became


CELL = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | NUMBERS
    | TIMES
    | CLOCKS
    | st.from_regex(r"[0-9A-Fa-f]{0,6}", fullmatch=True)
    | st.text(max_size=8)
)


@pytest.mark.parametrize("name", qlik_mutants.TYPES)
@examples(0.5)
@given(cell=CELL, old=CELL)
def test_a_cell_of_a_type(name: str, cell: object, old: object) -> None:
    """Both paths agree on a cell alone next to the key, in the old and in the new row."""
    assert TAUGHT is not None
    value = body_of({"id": 7, name: cell}, {"id": 7, name: old}, changeMask="3FF", columnMask="3FF")
    assert agree(*TAUGHT[:2], at(5, value)) in ("taken", "cell", "spelling", "key")


def test_common_cells_are_read_without_their_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptions are bytes, and numbers with an exponent or beyond 64 bits."""
    asked: list[bytes] = []
    monkeypatch.setattr(
        "translator.translation.native_path.convert_cell", lambda text, convert: asked.append(text) or b"null"
    )
    _, path, _, _ = taught(**NAMED)
    chance = Random(1)
    path.take([at(n, qlik_mutants.spelled(chance, qlik_mutants.common(chance))) for n in range(200)])
    odd = {b'""', b'"00FF"', b"-0.0", b"0.0", b"1e+22", b"18446744073709551615"}
    assert {text for text in asked if not text.startswith(b'"caf')} <= odd


@examples(1)
@given(
    column=st.none() | st.integers(0, 2**11) | st.just(0x3FF),
    change=st.none() | st.integers(0, 2**11),
    nulls=st.integers(0, 2**10 - 1),
    changed=st.integers(0, 2**10 - 1),
    operation=st.sampled_from(("INSERT", "UPDATE", "DELETE", "REFRESH")),
    captures=st.booleans(),
    schema_id=st.sampled_from((None, qlik_mutants.IDS[0], qlik_mutants.IDS[2])),
)
def test_masks(
    column: int | None,
    change: int | None,
    nulls: int,
    changed: int,
    operation: str,
    captures: bool,
    schema_id: str | None,
) -> None:
    """Both paths agree on masks with any bits, with consistent and contradicting nulls and changes."""
    assert TAUGHT is not None
    if captures:
        nulls |= ~(0x3FF if column is None else column)
        changed &= 0 if change is None else change
    cells = [(place, name, values) for place, (name, (*_, values)) in enumerate(qlik_mutants.TYPES.items())]
    data = {name: None if nulls >> place & 1 else values[0] for place, name, values in cells}
    before = {name: values[1 % len(values)] if changed >> place & 1 else data[name] for place, name, values in cells}
    masks = {"columnMask": column, "changeMask": change}
    headers = {name: None if mask is None else f"{mask:x}" for name, mask in masks.items()}
    message = {
        "data": data,
        "beforeData": before if operation == "UPDATE" else None,
        "headers": {"operation": operation, **headers},
    }
    agree(*TAUGHT[:2], at(5, json.dumps(qlik_mutants.enveloped(message, schema_id)).encode()))


@examples(1)
@given(
    timestamp=st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?([Zz]|[+-]02:?00)?",
        fullmatch=True,
    ),
    sequence=st.from_regex(r"[0-9]{4}[01][0-9][0-3][0-9][0-2][0-9]([0-6][0-9]){2}[0-9]{20,22}", fullmatch=True),
)
def test_times(timestamp: str, sequence: str) -> None:
    assert TAUGHT is not None
    value = body_of({"id": 7}, timestamp=timestamp, changeSequence=sequence)
    assert agree(*TAUGHT[:2], at(5, value)) in ("taken", "cell")


def test_withheld_columns_and_the_key_of_a_kafka_key_are_taken() -> None:
    """Otherwise the properties above might not cover them."""
    translator, path, _, _ = taught(topics="SHOP.ORDERS")
    withheld = body_of({"id": 7, "name": None}, {"id": 7, "name": None}, columnMask="3FD", changeMask="4")
    assert "taken" == agree(translator, path, at(1, withheld))
    keyed = withheld.replace(qlik_mutants.IDS[0].encode(), qlik_mutants.IDS[2].encode())
    (found,) = path.take([at(2, keyed, b'{"id":7}')])
    assert not isinstance(found, str)
    assert b'["source",null,"SHOP","ORDERS",{"id":7}]' == found.outputs[0][0].key
    assert "taken" == agree(translator, path, at(2, keyed, b'{"id":7}'))
