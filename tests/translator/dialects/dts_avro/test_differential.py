"""The reader compared with fastavro and the reference package `avro`, and with `scan` for damaged records."""

from __future__ import annotations

import io
import json
from typing import Any

import avro.io
import avro.schema
import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import cases, encode
from tests.translator.dialects.dts_avro.messages import BRANCHES, as_fastavro
from translator.dialects._avro_primitives import Damage, read_long
from translator.dialects.dts_avro.reader import RecordReader
from translator.dialects.dts_avro.record import EMPTY_OBJECT
from translator.dialects.dts_avro.scan import compile_scan
from translator.dialects.dts_avro.schema import OPERATIONS, SOURCE_TYPES, V2, V3
from translator.errors import MessageError
from translator.message import Limits

SCHEMAS: dict[str, Any] = {"v2": V2, "v3": V3}
LIMITS = Limits()
READER = RecordReader(LIMITS)
_scan = compile_scan(V2, LIMITS.columns)

# -- records with any content

_INTS = st.integers(-(2**31), 2**31 - 1)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_TEXTS = st.text(max_size=9) | st.text("ab", min_size=63, max_size=66)
_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "int": _INTS,
    "long": _LONGS,
    "double": st.floats(allow_nan=False),
    "string": _TEXTS,
    "bytes": st.binary(max_size=9) | st.binary(min_size=63, max_size=66),
}
_NAMED: dict[str, Any] = {branch["name"]: branch for branch in BRANCHES[1:]}


def _of(schema: Any) -> st.SearchStrategy[Any]:
    """Generate any value that the schema of an image field allows."""
    if isinstance(schema, list):
        return st.one_of([_of(branch) for branch in schema])
    if isinstance(schema, str):
        return _PRIMITIVES[schema] if schema in _PRIMITIVES else _of(_NAMED[schema])
    if schema["type"] == "enum":
        return st.sampled_from(schema["symbols"])
    return st.fixed_dictionaries({field["name"]: _of(field["type"]) for field in schema["fields"]})


# fastavro takes plain text for an EmptyObject, because no other branch fits.
CELLS = st.one_of(
    [st.none()]
    + [
        _of(branch) if branch["type"] == "enum" else st.tuples(st.just(branch["name"]), _of(branch))
        for branch in BRANCHES[1:]
    ]
)
_IMAGES = st.none() | _TEXTS | st.lists(CELLS, max_size=6)
_FIELDS = st.lists(st.fixed_dictionaries({"name": _TEXTS, "dataTypeNumber": _INTS}), max_size=4)
RECORDS = st.fixed_dictionaries(
    {
        "version": _INTS,
        "id": _LONGS,
        "sourceTimestamp": _LONGS,
        "sourcePosition": _TEXTS,
        "safeSourcePosition": _TEXTS,
        "sourceTxid": _TEXTS,
        "source": st.fixed_dictionaries({"sourceType": st.sampled_from(SOURCE_TYPES), "version": _TEXTS}),
        "operation": st.sampled_from(OPERATIONS),
        "objectName": st.none() | _TEXTS,
        "processTimestamps": st.none() | st.lists(_LONGS, max_size=3),
        "tags": st.dictionaries(_TEXTS, _TEXTS, max_size=4),
        "fields": st.none() | _TEXTS | _FIELDS,
        "beforeImages": _IMAGES,
        "afterImages": _IMAGES,
        "bornTimestamp": _LONGS,
    }
)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """Generate records, including updates with few changes."""
    record: dict[str, Any] = draw(RECORDS)
    if draw(st.booleans()) and isinstance(record["beforeImages"], list):
        cells = record["beforeImages"]
        record["afterImages"] = [draw(CELLS) if draw(st.integers(0, 3)) == 0 else cell for cell in cells]
    return record


# -- second and third opinions


def by_fastavro(value: bytes, version: str) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), SCHEMAS[version], None, return_named_type=True)


def _reference(version: str) -> Any:
    plain = {**SCHEMAS[version]}
    for name in [name for name in plain if name.startswith("__")]:
        del plain[name]
    return avro.schema.parse(json.dumps(plain))


_REFERENCES = {version: _reference(version) for version in SCHEMAS}


def by_reference(value: bytes, version: str) -> Any:
    return avro.io.DatumReader(_REFERENCES[version]).read(avro.io.BinaryDecoder(io.BytesIO(value)))


def without_branches(record: dict[str, Any]) -> dict[str, Any]:
    """Drop the branch names, which the reference package does not return."""

    def bare(image: Any) -> Any:
        return [cell and cell[1] for cell in image] if isinstance(image, list) else image

    return {**record, "beforeImages": bare(record["beforeImages"]), "afterImages": bare(record["afterImages"])}


@pytest.mark.requirement("dts_avro.decode.3", "dts_avro.tests.2")
@examples(3)
@given(records(), st.sampled_from(sorted(SCHEMAS)))
def test_three_readers_agree(record: dict[str, Any], version: str) -> None:
    """Whatever a record contains, all three read it as it was written."""
    value = encode(record, version)
    found = READER.read(value)
    assert version == found.schema
    assert by_fastavro(value, version) == as_fastavro(found)
    assert by_reference(value, version) == without_branches(as_fastavro(found))


@pytest.mark.requirement("dts_avro.tests.1")
@pytest.mark.parametrize("name", sorted(set(cases()) - {"damaged", "json_for_another_dialect"}))
def test_three_readers_agree_on_the_cases(name: str) -> None:
    """The same holds for the records of the cases."""
    value = cases()[name]
    found = READER.read(value)
    assert by_fastavro(value, found.schema) == as_fastavro(found)
    assert by_reference(value, found.schema) == without_branches(as_fastavro(found))


# -- damage


def scanned(value: bytes) -> str | None:
    """Return the version according to the strict walk that fastavro needs first, or None if it rejects the bytes."""
    try:
        end = _scan(value, 0)
        if end == len(value):
            return "v2"
        return "v3" if read_long(value, end)[1] == len(value) else None
    except (Damage, IndexError):
        return None


def plainly(value: bytes) -> Any:
    """Return what scan and fastavro read, or None if one of them rejects the bytes."""
    version = scanned(value)
    if version is None:
        return None
    try:
        return by_fastavro(value, version)
    except UnicodeDecodeError:
        return None


def quickly(value: bytes) -> Any:
    """Return what the reader reads."""
    try:
        return as_fastavro(READER.read(value))
    except MessageError:
        return None


def spliced(value: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Return the bytes with some of them replaced."""
    damaged = bytearray(value)
    for at, length, new in edits:
        at %= len(damaged) + 1
        damaged[at : at + length] = new
    return bytes(damaged)


EDITS = st.lists(
    st.tuples(
        st.integers(0, 1 << 16),
        st.integers(0, 3),
        st.sampled_from([b"", b"\0", b"\1", b"\2", b"\x80", b"\x80\0", b"\x84\0", b"\xff", b"\x1a", b"\xc3\xa9"])
        | st.binary(max_size=3),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.requirement("dts_avro.decode.7")
@examples(7)
@given(st.sampled_from(sorted(cases().values())) | records().map(lambda record: encode(record, "v3")), EDITS)
def test_damage_is_judged_alike(value: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    """The reader rejects exactly what the strict walk or fastavro rejects, and reads the rest as they do."""
    damaged = spliced(value, edits)
    # As text, because NaN is not equal to itself.
    assert str(plainly(damaged)) == str(quickly(damaged))


@pytest.mark.requirement("dts_avro.decode.7")
def test_every_bit_is_judged_alike() -> None:
    """The same holds for every byte of an update, changed in four ways."""
    value = cases()["mysql_update"]
    for at in range(len(value)):
        for bit in (1, 2, 0x40, 0x80):
            damaged = spliced(value, [(at, 1, bytes([value[at] ^ bit]))])
            assert str(plainly(damaged)) == str(quickly(damaged)), (at, bit)


@pytest.mark.requirement("dts_avro.decode.6")
def test_what_the_reader_remembers_changes_nothing() -> None:
    """Cached columns of another record are used only for the same bytes, so a new reader gives the same result."""
    values = [value for value in cases().values() if plainly(value) is not None]
    for value in [*values, *reversed(values)]:
        assert as_fastavro(RecordReader(LIMITS).read(value)) == as_fastavro(READER.read(value))


@pytest.mark.requirement("dts_avro.tests.2")
@pytest.mark.parametrize("name", ["mysql_insert", "mysql_withheld"])
def test_an_index_in_two_bytes_is_that_index(name: str) -> None:
    """Avro does not require the shortest form. The cell is the same, and so is a whole image of them."""
    value = cases()[name]
    record = READER.read(value)
    assert isinstance(record.after, list)
    image = b"".join(record.after)
    assert 1 == value.count(image)
    longer = b"".join(bytes([cell[0] | 0x80, 0]) + _longer_ordinal(cell) for cell in record.after)
    assert as_fastavro(record) == as_fastavro(READER.read(value.replace(image, longer)))


def _longer_ordinal(cell: bytes) -> bytes:
    return bytes([cell[1] | 0x80, 0]) if cell[0] == EMPTY_OBJECT else cell[1:]
