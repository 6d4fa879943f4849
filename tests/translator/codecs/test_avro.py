"""Avro: the headers, one datum compared with hand-written bytes, and all others compared with fastavro."""

import re
import subprocess
import sys

import fastavro
import msgspec
import pytest
from hypothesis import given

from bench.steps.fastavro_events import fastavro_datum
from cdc_core.envelope import ChangeEvent, Issue, Origin, Tx, avro_schema
from cdc_core.position import position
from cdc_core.wire_format import FINGERPRINT
from tests.sizes import examples
from tests.translator.codecs.corpus import CORPUS
from tests.translator.examples import BLANK, UPDATE
from tests.translator.strategies import events
from translator.codecs.avro import HEADER, AvroCodec, confluent_header


def _value(event: ChangeEvent) -> bytes:
    (record,) = AvroCodec().encode(event)
    assert record.value is not None
    return record.value


def _crc64(text: bytes) -> int:
    """Compute the Rabin fingerprint as defined in the Avro specification ("Schema Fingerprints")."""
    empty = 0xC15D213AA4D7A795
    table = []
    for byte in range(256):
        fingerprint = byte
        for _ in range(8):
            fingerprint = (fingerprint >> 1) ^ (empty & -(fingerprint & 1))
        table.append(fingerprint)
    result = empty
    for byte in text:
        result = (result >> 8) ^ table[(result ^ byte) & 0xFF]
    return result


class TestHeader:
    def test_fingerprint(self) -> None:
        """The fingerprint of version 1 never changes, because consumers find the schema by it.

        Apache Avro for Java 1.12.1 computes the same from envelope.avsc (SchemaNormalization.parsingFingerprint).
        """
        assert "1aa4b45bd6db449a" == FINGERPRINT.hex()

    def test_is_the_crc_of_the_canonical_form(self) -> None:
        """The header is C3 01, then CRC-64-AVRO of the parsing canonical form, little-endian."""
        canonical = fastavro.schema.to_parsing_canonical_form(avro_schema()).encode()
        assert b"\xc3\x01" + _crc64(canonical).to_bytes(8, "little") == HEADER

    @given(events())
    def test_starts_every_value(self, event: ChangeEvent) -> None:
        """The first byte distinguishes the framing from JSON (7B) and from the registry's (00)."""
        assert HEADER == _value(event)[:10]


SMALL = msgspec.structs.replace(
    BLANK,
    id="s/t/0/64/0",
    kind="row",
    op="c",
    source="s",
    dialect="canal",
    table="o",
    pos=position(64, 0),
    pos_scope="t:0@-",
    ts_origin_us=1_500_000,
    key='{"id":-1}',
    key_kind="primary",
    after='{"id":-1}',
    after_state="partial",
    changed=[],
    origin=Origin("t", 0, 64, 0, 1),
    notes=["N"],
)

NULL = "00"
"""Branch 0 of a union. Branch 1 is 02 (zig-zag)."""

# One line per field. A length or number n is written as zig-zag 2n, in groups of seven bits, lowest group first.
BY_HAND = [
    ("v", "02"),  # 1
    ("id", "14", b"s/t/0/64/0"),  # 10 bytes
    ("kind", "06", b"row"),
    ("op", "02 02", b"c"),
    ("source", "02", b"s"),
    ("dialect", "0a", b"canal"),
    ("variant", NULL),
    ("variant_basis", NULL),
    ("dbms", NULL),
    ("server", NULL),
    ("task", NULL),
    ("db", NULL),
    ("schema", NULL),
    ("table", "02 02", b"o"),
    # 70 characters: 4 + 1 + 38 + 1 + 19 + 1 + 6; 140 = 0b1_0001100, so 8c 01
    ("pos", "8c 01", b"0000." + b"0" * 38 + b".0000000000000000064.000000"),
    ("pos_scope", "0a", b"t:0@-"),
    ("pos_native", NULL),
    ("ts_commit_us", NULL),
    ("ts_capture_us", NULL),
    # 1 500 000 -> 3 000 000 = 0b10110111_0001101_1000000 in groups of seven: 1000000, 0001101, 0110111, 1
    ("ts_origin_us", "c0 8d b7 01"),
    ("key", "02 12", b'{"id":-1}'),  # 9 bytes
    ("key_old", NULL),
    ("key_kind", "0e", b"primary"),
    ("before", NULL),
    ("after", "02 12", b'{"id":-1}'),
    ("before_state", "08", b"none"),
    ("after_state", "0e", b"partial"),
    ("changed", "02 00"),  # an array without blocks: not null
    ("unavailable", NULL),
    ("issues", NULL),
    ("schema_id", NULL),
    ("tx", NULL),
    ("ddl", NULL),
    ("origin", "02", b"t", "00 80 01 00 02"),  # partition 0, offset 64 -> 128 = 80 01, row 0, rows 1
    ("notes", "02 02 02", b"N", "00"),  # one block of one string, then the end
    ("ext", NULL),
]


class TestDatum:
    def test_golden(self) -> None:
        """One event has the bytes written by hand from the Avro specification, field by field."""
        parts = [part for _, *parts in BY_HAND for part in parts]
        datum = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
        assert HEADER + datum == _value(SMALL)

    def test_golden_names_every_field(self) -> None:
        """The table above lists the schema's fields in order."""
        assert [field["name"] for field in avro_schema()["fields"]] == [name for name, *_ in BY_HAND]


def _like_update(**fields: object) -> ChangeEvent:
    return msgspec.structs.replace(UPDATE, **fields)


def _numbered(number: int) -> ChangeEvent:
    """Return an event with this number wherever the schema has a long."""
    times = dict.fromkeys(("ts_commit_us", "ts_capture_us", "ts_origin_us"), number)
    return _like_update(**times, tx=Tx("", number, number), origin=Origin("t", 0, number, 0, 1))


def _around_powers(bits: int) -> list[int]:
    """Return the numbers of a signed type around each change of the varint's length or encoding."""
    edges = {sign * (1 << power) + step for sign in (1, -1) for power in range(bits) for step in (-1, 0, 1)}
    return sorted(edge for edge in edges if -(1 << bits - 1) <= edge < 1 << bits - 1)


class TestOracle:
    """fastavro, which knows only the schema, writes the same bytes."""

    @examples(3)
    @given(events())
    def test_any_event(self, event: ChangeEvent) -> None:
        """This holds for any event that a release can legally write."""
        assert fastavro_datum(event, HEADER) == _value(event)

    @pytest.mark.parametrize("name", CORPUS)
    def test_corpus(self, name: str) -> None:
        """The corpus covers every field, branch and edge of the schema."""
        assert fastavro_datum(CORPUS[name], HEADER) == _value(CORPUS[name])

    def test_longs(self) -> None:
        """Every length of a long is written twice, because the second time some of its bytes are cached."""
        for number in _around_powers(64) * 2:
            event = _numbered(number)
            assert fastavro_datum(event, HEADER) == _value(event)

    def test_ints(self) -> None:
        """Every length of an int is right, and row and rows are not confused."""
        for number in _around_powers(32):
            event = _like_update(v=number, origin=Origin("t", number, 0, number, ~number))
            assert fastavro_datum(event, HEADER) == _value(event)

    def test_lengths(self) -> None:
        """Every length of a text is right, in bytes and not in characters."""
        for length in (0, 1, 63, 64, 65, 8191, 8192, 8193, 1_048_575, 1_048_576):
            for text in ("x" * length, "名" * length):
                event = _like_update(id=text, key=text, table=text, notes=[text], ext={text: text})
                assert fastavro_datum(event, HEADER) == _value(event)

    def test_many_names(self) -> None:
        """Cached bytes of one name are never written for another, however many names there are."""
        for _ in range(2):
            for number in range(5000):
                name = f"t{number}"
                event = _like_update(table=name, pos_scope=name, changed=[name], origin=Origin(name, number, 0, 0, 1))
                assert fastavro_datum(event, HEADER) == _value(event)

    def test_null_and_empty(self) -> None:
        """A cached null is not an empty text, and an unknown list is not an empty one."""
        for nothing in (None, "", None):
            event = _like_update(op=nothing, server=nothing, table=nothing, key=nothing, schema_id=nothing)
            assert fastavro_datum(event, HEADER) == _value(event)
        for no_names in (None, [], [""], None):
            event = _like_update(changed=no_names, unavailable=no_names, notes=no_names)
            assert fastavro_datum(event, HEADER) == _value(event)


LONE = "\ud800"
"""A lone surrogate: half of a character, which UTF-8 cannot encode."""


class TestRefusal:
    @pytest.mark.parametrize(
        "fields",
        [
            *({name: LONE} for name in ("id", "op", "db", "table", "pos_scope", "pos_native", "key", "after")),
            {"changed": ["a", LONE]},
            {"issues": [Issue("a", "b", LONE)]},
            {"ext": {LONE: ""}},
            {"origin": Origin(LONE, 0, 0, 0, 1)},
        ],
        ids=str,
    )
    def test_text(self, fields: dict[str, object]) -> None:
        """Text that UTF-8 cannot encode is rejected, never replaced."""
        with pytest.raises(ValueError, match="surrogates not allowed"):
            AvroCodec().encode(_like_update(**fields))

    @pytest.mark.parametrize("number", [1 << 63, 1 << 64, -(1 << 63) - 1])
    @pytest.mark.parametrize("field", ["ts_commit_us", "ts_capture_us", "ts_origin_us"])
    def test_long(self, field: str, number: int) -> None:
        """A number of more than 64 bits is rejected, never truncated."""
        with pytest.raises(ValueError, match="does not fit into an Avro long"):
            AvroCodec().encode(_like_update(**{field: number}))

    @pytest.mark.parametrize("number", [1 << 31, 1 << 63, -(1 << 31) - 1])
    @pytest.mark.parametrize("field", ["partition", "row", "rows"])
    def test_int(self, field: str, number: int) -> None:
        """A number of more than 32 bits in an int field is rejected, because other readers could not read it."""
        origin = msgspec.structs.replace(UPDATE.origin, **{field: number})
        with pytest.raises(ValueError, match=f"^{number} does not fit into an Avro int, which has 32 bits$"):
            AvroCodec().encode(_like_update(origin=origin))


ANOTHER_ENVELOPE = """
import cdc_core.envelope as envelope

today = envelope.avro_schema


def tomorrow(*nested, **options):
    schema = today(*nested, **options)
    added = {"name": "added", "type": ["null", "string"], "default": None}
    return schema if nested else {**schema, "fields": [*schema["fields"], added]}


envelope.avro_schema = tomorrow
import translator.codecs.avro
"""


def test_a_field_that_the_encoder_does_not_know() -> None:
    """A codec whose encoder was written for another field list does not load, and the error explains what to do."""
    loaded = subprocess.run([sys.executable, "-c", ANOTHER_ENVELOPE], capture_output=True, text=True)
    assert re.search(
        r"RuntimeError: the envelope's schema is [0-9a-f]{16}, but codecs/_datum.py writes 1aa4b45bd6db449a; "
        "update the fields in that module, then the fingerprint",
        loaded.stderr,
    )


class TestConfluent:
    @pytest.mark.parametrize(
        ("schema_id", "header"), [(1, "0000000001"), (0x01020304, "0001020304"), (2**31 - 1, "007fffffff")]
    )
    def test_header(self, schema_id: int, header: str) -> None:
        """The header is a zero byte, then the id, big-endian."""
        assert bytes.fromhex(header) == confluent_header(schema_id)

    @pytest.mark.parametrize("schema_id", [0, -1, 2**31])
    def test_no_id(self, schema_id: int) -> None:
        """A number that is not a valid registry id is rejected."""
        with pytest.raises(ValueError, match=f"schema id {schema_id}; expected a number from 1 to 2147483647"):
            confluent_header(schema_id)

    def test_only_the_header_differs(self) -> None:
        """The datum is the same as in single-object encoding."""
        (record,) = AvroCodec(confluent_header(7)).encode(UPDATE)
        assert b"\x00\x00\x00\x00\x07" + _value(UPDATE).removeprefix(HEADER) == record.value

    def test_decode_wants_its_own_header(self) -> None:
        """A value with another id, or without a registry, is rejected."""
        codec = AvroCodec(confluent_header(7))
        (other,) = AvroCodec(confluent_header(8)).encode(UPDATE)
        with pytest.raises(ValueError, match="expected the header 0000000007, but found 0000000008"):
            codec.decode(other.value or b"")
        with pytest.raises(ValueError, match="expected the header 0000000007, but found c3011aa4b4"):
            codec.decode(_value(UPDATE))


class TestDecode:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (b"", "expected the header c3011aa4b45bd6db449a, but"),
            (b'{"v":1}', "7b2276223a317d"),
            (b"\xc3\x01" + bytes(8), "c3010000000000000000"),
            (HEADER, "truncated"),
            (_value(UPDATE)[:-2], "truncated"),
            (_value(UPDATE) + b"\x00", "the datum"),
        ],
        ids=["empty", "JSON", "another schema", "no datum", "truncated", "more"],
    )
    def test_refuses(self, value: bytes, reason: str) -> None:
        """Anything but exactly one event of this version is rejected with what was expected."""
        with pytest.raises(ValueError, match=reason):
            AvroCodec().decode(value)
