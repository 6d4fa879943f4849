"""Bytes -> record: versions, damage and other formats (§1, 2 and 8)."""

from typing import Any, cast

import pytest

from tests.translator.dialects.dts_avro.composer import (
    CASES,
    cases,
    character,
    compose,
    integer,
    row,
)
from tests.translator.dialects.made import made
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.reader import RecordReader
from translator.dialects.dts_avro.schema import NAMESPACE, V2, V3
from translator.errors import ErrorCode, MessageError
from translator.message import Limits, Setup

READER = RecordReader(Limits())
DIALECT = made(DtsAvro, Setup("src"), {})
SOUND = {name: message for name, message in cases().items() if name not in ("damaged", "json_for_another_dialect")}
ROW = SOUND["mysql_update"]


def _refused(value: bytes) -> MessageError:
    with pytest.raises(MessageError) as caught:
        READER.read(value)
    return caught.value


def _replaced(value: bytes, old: bytes, new: bytes) -> bytes:
    assert 1 == value.count(old), "the place to damage must be unique"
    return value.replace(old, new)


# -- the schema


@pytest.mark.requirement("dts_avro.decode.1")
def test_the_schema_is_the_published_one() -> None:
    """Fields, symbols and branches are in the order of the published files, because the order is the wire format."""
    v2, v3 = (cast(dict[str, Any], schema)["fields"] for schema in (V2, V3))
    assert v2 == v3[:-1]
    assert (
        "version id sourceTimestamp sourcePosition safeSourcePosition sourceTxid source operation objectName "
        "processTimestamps tags fields beforeImages afterImages bornTimestamp"
    ) == " ".join(field["name"] for field in v3)
    types = {field["name"]: field["type"] for field in v3}
    assert (
        "INSERT UPDATE DELETE DDL BEGIN COMMIT ROLLBACK ABORT HEARTBEAT CHECKPOINT COMMAND FILL FINISH CONTROL RDB "
        "NOOP INIT"
    ) == " ".join(types["operation"]["symbols"])
    assert ("MySQL Oracle SQLServer PostgreSQL MongoDB Redis DB2 PPAS DRDS HBASE HDFS FILE OTHER") == " ".join(
        types["source"]["fields"][0]["type"]["symbols"]
    )
    assert (
        "null Integer Character Decimal Float Timestamp DateTime TimestampWithTimeZone BinaryGeometry TextGeometry "
        "BinaryObject TextObject EmptyObject"
    ) == " ".join(branch.removeprefix(f"{NAMESPACE}.") for branch in types["afterImages"][2]["items"])


@pytest.mark.requirement("dts_avro.tests.1")
@pytest.mark.parametrize("name", sorted(cases()))
def test_the_cases_are_what_the_composer_writes(name: str) -> None:
    """The committed bytes of a case are the composed ones."""
    assert cases()[name] == (CASES / name / "message.bin").read_bytes()


# -- versions


@pytest.mark.requirement("dts_avro.decode.4")
def test_version_3_has_the_last_field() -> None:
    """Bytes after the fields of version 2 are bornTimestamp."""
    record = READER.read(compose("NOOP", bornTimestamp=1_697_526_121))
    assert ("v3", 1_697_526_121) == (record.schema, record.born_timestamp)


@pytest.mark.requirement("dts_avro.decode.4")
def test_version_2_has_no_last_field() -> None:
    """Without such bytes, bornTimestamp is absent and not 0."""
    record = READER.read(compose("NOOP", schema="v2"))
    assert ("v2", None) == (record.schema, record.born_timestamp)


@pytest.mark.requirement("dts_avro.decode.5")
def test_the_version_field_is_no_schema_version() -> None:
    """`DtsRecord.version` can have any value. Records of 2020 and 2021 had large numbers."""
    for number in (0, 170_844_600, -1):
        assert "v2" == READER.read(compose("NOOP", schema="v2", version=number)).schema
        assert "v3" == READER.read(compose("NOOP", schema="v3", version=number)).schema


@pytest.mark.requirement("dts_avro.decode.4")
@pytest.mark.parametrize("extra", [b"\0", b"\0\0", bytes(40)])
def test_bytes_after_the_record_are_refused(extra: bytes) -> None:
    """fastavro ignores bytes after a datum. Here the record must end where the value ends."""
    refused = _refused(compose("NOOP") + extra)
    assert ErrorCode.MALFORMED_AVRO == refused.code
    assert f"followed by {len(extra)} unexpected bytes" in refused.reason


# -- damage


@pytest.mark.requirement("dts_avro.decode.4", "dts_avro.reject.1")
@pytest.mark.parametrize("name", sorted(SOUND))
def test_truncation_is_never_a_success(name: str) -> None:
    """A truncated record is rejected. Only a cut exactly before bornTimestamp leaves a record, of version 2."""
    value = SOUND[name]
    readable = [(end, version) for end in range(3, len(value)) if (version := _version(value[:end]))]
    shorter = len(value) - len(_zigzag(1_697_526_120))
    assert ([] if name.endswith("v2") else [(shorter, "v2")]) == readable


def _version(value: bytes) -> str | None:
    try:
        return READER.read(value).schema
    except MessageError:
        return None


def _zigzag(number: int) -> bytes:
    """Return a long as Avro writes it, implemented separately as a second opinion."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_CHARACTER = b"\x0eutf8mb4"
_ONE_TEXT = row("INSERT", {"name": (253, character("x"))})


@pytest.mark.requirement("dts_avro.decode.7", "dts_avro.reject.1", "dts_avro.tests.2")
@pytest.mark.parametrize("index", [-1, -2, -13, -14, 13, 14, 63, 64, -64, -65, 2**31, -(2**63)])
def test_an_index_outside_the_union_is_refused(index: int) -> None:
    """fastavro takes -1 for the last branch. Here, an index must be that of a branch, and the error states it."""
    refused = _refused(_replaced(_ONE_TEXT, b"\x04" + _CHARACTER, _zigzag(index) + _CHARACTER))
    assert (ErrorCode.MALFORMED_AVRO, "$.afterImages") == (refused.code, refused.path)
    assert f"union index {_named(index)}; allowed: 0 to 12" in refused.reason


@pytest.mark.requirement("dts_avro.decode.7", "dts_avro.reject.1")
@pytest.mark.parametrize("ordinal", [-1, -13, 13, 700])
def test_an_ordinal_outside_the_enum_is_refused(ordinal: int) -> None:
    """fastavro takes -1 for the last symbol. An ordinal of 13 may be a source type added later."""
    value = compose("NOOP", source=("MySQL", "8.0.28"))
    refused = _refused(_replaced(value, b"\x00\x0c8.0.28", _zigzag(ordinal) + b"\x0c8.0.28"))
    assert "$.source.sourceType" == refused.path
    assert f"enum ordinal {_named(ordinal)}; allowed: 0 to 12" in refused.reason


def _named(number: int) -> str:
    """A number of more than one byte is not shown, because it may be a row value moved there by damage."""
    return str(number) if -64 <= number < 64 else "outside -64 to 63"


@pytest.mark.requirement("dts_avro.decode.7")
def test_an_operation_outside_the_enum_is_refused() -> None:
    """The ordinal -1 is rejected and does not mean INIT."""
    value = compose("NOOP", source=("MySQL", "8.0.28"))
    refused = _refused(_replaced(value, b"8.0.28\x1e", b"8.0.28\x01"))
    assert ("$.operation", True) == (refused.path, "enum ordinal -1" in refused.reason)


@pytest.mark.requirement("dts_avro.decode.7")
def test_an_int_beyond_32_bits_is_refused() -> None:
    """Such an int is rejected, although fastavro reads an int as a long."""
    refused = _refused(_zigzag(2**31) + compose("NOOP")[1:])
    assert ("$.version", True) == (refused.path, "32 bits" in refused.reason)


@pytest.mark.requirement("dts_avro.decode.7")
@pytest.mark.parametrize("varint", [b"\x80" * 10 + b"\0", b"\xff" * 9 + b"\x02"])
def test_a_varint_beyond_64_bits_is_refused(varint: bytes) -> None:
    """A varint has at most ten bytes and 64 bits."""
    value = compose("NOOP", id=5, sourceTimestamp=6)
    refused = _refused(_replaced(value, b"\0\x0a\x0c\x10", b"\0" + varint + b"\x0c\x10"))
    assert ("$.id", True) == (refused.path, "64 bits" in refused.reason)


def test_a_varint_may_be_longer_than_it_needs() -> None:
    """Avro does not require the shortest form: an index in two bytes is that index."""
    value = _replaced(_ONE_TEXT, b"\x04" + _CHARACTER, b"\x84\x00" + _CHARACTER)
    assert READER.read(_ONE_TEXT) == READER.read(value)


@pytest.mark.requirement("dts_avro.decode.7")
def test_a_tag_twice_is_refused() -> None:
    """A duplicate tag is rejected, although fastavro keeps the last one."""
    refused = _refused(_replaced(compose("NOOP", tags={"a": "1", "b": "2"}), b"\x02b\x022", b"\x02a\x022"))
    assert ("$.tags", True) == (refused.path, "twice" in refused.reason)


@pytest.mark.requirement("dts_avro.reject.1")
def test_text_must_be_utf8() -> None:
    """Strings must be UTF-8. The bytes of a Character are not checked here."""
    refused = _refused(_replaced(compose("NOOP", sourcePosition="posi"), b"posi", b"pos\xff"))
    assert ErrorCode.MALFORMED_AVRO == refused.code


def test_several_blocks_are_one_array() -> None:
    """Avro can split an array into blocks with or without a size. All forms give the same array."""
    whole = compose("NOOP", processTimestamps=[1, 2, 3])
    sized = _replaced(whole, b"\x06\x02\x04\x06\0", b"\x02\x02" + b"\x03\x04\x04\x06" + b"\0")
    assert READER.read(whole) == READER.read(sized)
    wrong = _replaced(whole, b"\x06\x02\x04\x06\0", b"\x02\x02" + b"\x03\x06\x04\x06" + b"\0")
    assert "the content of a block does not match the block's size" in _refused(wrong).reason


@pytest.mark.requirement("dts_avro.decode.7")
def test_a_count_beyond_the_data_costs_nothing() -> None:
    """A declared count above the limit is rejected before anything is allocated."""
    value = compose("NOOP", processTimestamps=[1])
    refused = _refused(_replaced(value, b"\x02\x02\x02\0", b"\x02" + _zigzag(2**40) + b"\x02\0"))
    assert (ErrorCode.LIMIT_EXCEEDED, "$.processTimestamps") == (refused.code, refused.path)


def test_columns_are_limited() -> None:
    """More columns than `limits.columns` are LIMIT_EXCEEDED, however they are split into blocks."""
    value = row("INSERT", {"a": (3, integer(1)), "b": (3, integer(2)), "c": (3, None)})
    assert "v3" == RecordReader(Limits(columns=3)).read(value).schema
    with pytest.raises(MessageError) as caught:
        RecordReader(Limits(columns=2)).read(value)
    assert (ErrorCode.LIMIT_EXCEEDED, "$.fields") == (caught.value.code, caught.value.path)


# -- other formats


@pytest.mark.requirement("dts_avro.reject.2", "dts_avro.reject.3")
@pytest.mark.parametrize(
    ("value", "named"),
    [
        (b'{"data":null,"type":"INSERT"}', "JSON"),
        (b" [1, 2]\n", "JSON"),
        (b"Obj\x01\x04\x16avro.schema", "container file"),
        (b"\xc3\x01" + bytes(8) + compose("NOOP"), "single-object encoding"),
        (b"\0\0\0\0\x07" + compose("NOOP"), "Confluent prefix"),
        (b"\0\0\0\0\x07" + ROW, "Confluent prefix"),
    ],
)
def test_other_formats_are_named(value: bytes, named: str) -> None:
    """A value in another format is FRAMING with the name of that format."""
    refused = _refused(value)
    assert (ErrorCode.FRAMING, True) == (refused.code, named in refused.reason)


@pytest.mark.requirement("dts_avro.reject.2", "dts_avro.reject.3")
def test_first_bytes_alone_convict_nobody() -> None:
    """`{` and 00 are also legal first bytes of a record, so reading comes first. Damage after 00 is normal damage."""
    assert -62 == READER.read(_zigzag(-62) + compose("NOOP")[1:]).version
    assert ErrorCode.MALFORMED_AVRO == _refused(ROW[:-30]).code
