"""Avro single-object encoding, checked against the Avro specification by hand and not against the library."""

import fastavro
import pytest
from hypothesis import given

from tests.translator.examples import UPDATE
from tests.translator.strategies import events
from translator.codecs.avro import FINGERPRINT, HEADER, AvroCodec
from translator.envelope import ChangeEvent, Origin, avro_schema, position


def _value(event: ChangeEvent) -> bytes:
    (record,) = AvroCodec().encode(event)
    assert record.value is not None
    return record.value


def _crc64(text: bytes) -> int:
    """The Rabin fingerprint of the Avro specification ("Schema Fingerprints"), as its text defines it."""
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
        """The fingerprint of version 1 never changes: consumers find the schema by it.

        Apache Avro for Java 1.12.1 computes the same from envelope.avsc (SchemaNormalization.parsingFingerprint).
        """
        assert "1aa4b45bd6db449a" == FINGERPRINT.hex()

    def test_is_the_crc_of_the_canonical_form(self) -> None:
        """C3 01, then CRC-64-AVRO of the parsing canonical form, little-endian."""
        canonical = fastavro.schema.to_parsing_canonical_form(avro_schema()).encode()
        assert b"\xc3\x01" + _crc64(canonical).to_bytes(8, "little") == HEADER

    @given(events())
    def test_starts_every_value(self, event: ChangeEvent) -> None:
        """The first byte tells the framing apart from JSON (7B) and from the registry's (00)."""
        assert HEADER == _value(event)[:10]


SMALL = ChangeEvent(
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
"""Branch 0 of a union; branch 1 is 02 (zig-zag)."""

# One line a field. A length or number n is written as zig-zag 2n, in groups of seven bits, lowest group first.
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
        """One event, worked out by hand from the Avro specification, field by field."""
        parts = [part for _, *parts in BY_HAND for part in parts]
        datum = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
        assert HEADER + datum == _value(SMALL)

    def test_golden_names_every_field(self) -> None:
        """The table above lists the fields of the schema in their order."""
        assert [field["name"] for field in avro_schema()["fields"]] == [name for name, *_ in BY_HAND]


class TestDecode:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (b"", "expected the Avro single-object header c3011aa4b45bd6db449a, got "),
            (b'{"v":1}', "got 7b2276223a317d"),
            (b"\xc3\x01" + bytes(8), "got c3010000000000000000"),
            (HEADER, "ends too early"),
            (_value(UPDATE)[:-2], "ends too early"),
            (_value(UPDATE) + b"\x00", "bytes after the datum"),
        ],
        ids=["empty", "JSON", "another schema", "no datum", "truncated", "more"],
    )
    def test_refuses(self, value: bytes, reason: str) -> None:
        """What is not exactly one event of this version is refused, with what was expected."""
        with pytest.raises(ValueError, match=reason):
            AvroCodec().decode(value)
