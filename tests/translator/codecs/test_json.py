"""Plain JSON: the fields of the contract in order, with images as objects."""

import json

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent
from tests.translator.examples import UPDATE
from translator.codecs.json import JsonCodec


def _value(event: ChangeEvent) -> bytes:
    (record,) = JsonCodec().encode(event)
    assert record.value is not None
    return record.value


def test_golden() -> None:
    """An event is right byte for byte: all fields in order, without spaces, key and images nested unchanged."""
    assert (
        b'{"v":1,"id":"shop/raw.shop/3/42/0","kind":"row","op":"u","source":"shop","dialect":"canal",'
        b'"variant":"oss","variant_basis":"declared","dbms":"mysql","server":"db-1","task":"task-7",'
        b'"db":"shop","schema":"dbo","table":"orders",'
        b'"pos":"0000.00000000000000000000000000000000000000.0000000000000000042.000000",'
        b'"pos_scope":"raw.shop:3@dGhlLXRvcGljLWlkLS0tLQ","pos_native":"binlog.000007:1234",'
        b'"ts_commit_us":1700000000000000,"ts_capture_us":1700000000250000,"ts_origin_us":1700000000500000,'
        b'"key":{"id":8},"key_old":{"id":7},"key_kind":"primary",'
        b'"before":{"id":7,"price":"9.90"},"after":{"id":8,"price":"12.50"},'
        b'"before_state":"partial","after_state":"full","changed":["id","price"],"unavailable":["photo"],'
        b'"issues":[{"col":"born","code":"ZERO_DATE","raw":"0000-00-00"}],"schema_id":"0123456789abcdef",'
        b'"tx":{"id":"gtid:5","seq":1,"size":2,"last":false},"ddl":null,'
        b'"origin":{"topic":"raw.shop","partition":3,"offset":42,"row":0,"rows":1},'
        b'"notes":["PK_CHANGED"],"ext":{"rowid":"AAAB"}}'
    ) == _value(UPDATE)


def test_one_line() -> None:
    """An event is one line, whatever its texts contain, so files of events are JSON lines."""
    event = msgspec.structs.replace(UPDATE, after='{"a":"\\n\\u2028"}', task="\r\n")
    assert b"\n" not in _value(event)
    assert b"\r" not in _value(event)


def test_a_later_release_added_a_field() -> None:
    """An unknown field is ignored, as the contract requires of consumers."""
    later = {**json.loads(_value(UPDATE)), "added_later": [1]}
    assert UPDATE == JsonCodec().decode(msgspec.json.encode(later))


def test_nulls_left_out() -> None:
    """A nullable field can be missing."""
    short = {name: value for name, value in json.loads(_value(UPDATE)).items() if name not in ("key_old", "ddl")}
    assert msgspec.structs.replace(UPDATE, key_old=None) == JsonCodec().decode(msgspec.json.encode(short))


@pytest.mark.parametrize("value", [b"", b"[]", b'{"v":1}', b'{"v":1', b"\xc3\x01"])
def test_not_an_event(value: bytes) -> None:
    """Anything but this envelope is rejected."""
    with pytest.raises(msgspec.DecodeError):
        JsonCodec().decode(value)
