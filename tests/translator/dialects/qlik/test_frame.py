"""Layouts of Qlik messages: which are read, and which are rejected by name (§1 and 3a)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translator.dialects.qlik.messages import bare, change, dialect, enveloped, message, refusal, sample
from translator.errors import MessageError
from translator.message import Writer

ROW = {"id": 1}


@pytest.mark.requirement("qlik.detect.1")
def test_variants() -> None:
    """The event states the layout with certainty."""
    assert Writer("bare_json", "certain") == change(dialect(), bare("INSERT", ROW)).writer
    assert Writer("enveloped_json", "certain") == change(dialect(), enveloped(bare("INSERT", ROW))).writer


@pytest.mark.requirement("qlik.detect.1")
@pytest.mark.parametrize("blank", [b"\xef\xbb\xbf", b" \r\n\t", b"\xef\xbb\xbf\n"])
def test_blanks_before_json(blank: bytes) -> None:
    """A byte order mark and whitespace before the object do not change the layout."""
    plain = json.dumps(bare("INSERT", ROW)).encode()
    assert change(dialect(), plain) == change(dialect(), blank + plain)


@pytest.mark.requirement("qlik.detect.2")
def test_refused_by_name() -> None:
    """The known layout of 2016 is not supported and rejected by name."""
    assert ("UNSUPPORTED_SHAPE", "$") == refusal(dialect(), sample("legacy_flat"))
    with pytest.raises(MessageError, match=r"legacy flat JSON.* is not supported in this release"):
        dialect().decode(message(sample("legacy_flat")))


@pytest.mark.requirement("qlik.detect.1", "qlik.detect.2")
@pytest.mark.parametrize(
    "value",
    [
        b"atMSh\x04DT",
        b"atMS",
        b"[]",
        b"1",
        b'"atMSG"',
        b"null",
        b"  ",
        b"<a/>",
        b"\xc3\x01abc",
        b"\xff\xfe{\x00",
        b"{}",
        b'{"data":{}}',
        b'{"headers":{}}',
        b'{"a":{"data":{},"headers":{}}}',
        b'{"message":1}',
        b'{"op":"F"}',
        b'{"message":{"data":{}}}',
        b'{"message":{"operation":"INSERT"}}',
        b'{"operation":"INSERT"}',
        b'{"lineage":{}}',
    ],
)
def test_no_layout(value: bytes) -> None:
    """A message without a known layout is rejected as such."""
    assert ("FRAMING", "$") == refusal(dialect(), value)


@pytest.mark.requirement("qlik.decode.3")
@pytest.mark.parametrize(
    "value", [b"{", b'{"data":{},', b"{} {}", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":"\xff"}', b"{'a':1}"]
)
def test_not_json(value: bytes) -> None:
    """A message that begins like JSON but is not is rejected as such."""
    assert ("MALFORMED_JSON", "$") == refusal(dialect(), value)


@pytest.mark.parametrize("place", ["magic", "type", "message", "data", "headers", "operation", "deep"])
def test_member_named_twice_anywhere(place: str) -> None:
    """Each object is checked, including those in cells. The last one would otherwise count."""
    text = json.dumps(enveloped(bare("INSERT", {"id": 1, "cell": {"deep": 1}})))
    at = text.index(f'"{place}"')
    assert "INVALID_FIELD" == refusal(dialect(), f'{text[:at]}"{place}": "x", {text[at:]}'.encode())[0]
    assert change(dialect(), text.encode())


@pytest.mark.requirement("qlik.decode.3")
@pytest.mark.parametrize("member", [b'"id": 2', b'"\\u0069d" : 1', b'"id":{"id":1}'])
def test_member_named_twice(member: bytes) -> None:
    """A duplicate column is ambiguous and rejected without quoting its value."""
    value = json.dumps(bare("INSERT", ROW)).encode().replace(b'"id": 1', b'"id": 1, ' + member)
    assert "INVALID_FIELD" == refusal(dialect(), value)[0]


def test_schema_id_of_the_registry() -> None:
    """An id that could be mistaken for a registry schema is not one."""
    wrong = enveloped(bare("INSERT", ROW), "registry/5")
    assert ("INVALID_FIELD", "$.messageSchemaId") == refusal(dialect(), wrong)


def test_depth() -> None:
    """Nesting beyond the limit is rejected, even far beyond it."""
    for depth in (65, 100_000):
        assert "LIMIT_EXCEEDED" == refusal(dialect(), b'{"a":' + b"[" * depth + b"]" * depth + b"}")[0]


def test_number_beyond_any_decimal() -> None:
    """An exponent beyond any decimal is rejected, although it is JSON."""
    value = json.dumps(bare("INSERT", {"a": 0})).replace('"a": 0', '"a": 1e9999999999999999999999').encode()
    assert ("LIMIT_EXCEEDED", "$") == refusal(dialect(), value)


@pytest.mark.requirement("qlik.detect.2", "qlik.detect.3", "qlik.test_inputs.4")
@pytest.mark.parametrize(
    ("member", "wrong", "code"),
    [
        ("magic", "atMSh", "INVALID_FIELD"),
        ("magic", None, "MISSING_FIELD"),
        ("magic", 1, "INVALID_FIELD"),
        ("type", "MT", "UNKNOWN_TYPE"),
        ("type", "dt", "UNKNOWN_TYPE"),
        ("type", None, "MISSING_FIELD"),
        ("message", None, "MISSING_FIELD"),
        ("message", "text", "INVALID_FIELD"),
        ("message", [], "INVALID_FIELD"),
        ("messageSchemaId", 7, "INVALID_FIELD"),
        ("messageSchemaId", "F" * 129, "INVALID_FIELD"),
    ],
)
def test_envelope(member: str, wrong: Any, code: str) -> None:
    """Every used member of the envelope is checked."""
    assert (code, f"$.{member}") == refusal(dialect(), {**enveloped(bare("INSERT", ROW)), member: wrong})


@pytest.mark.requirement("qlik.decode.3", "qlik.test_inputs.4")
@pytest.mark.parametrize(
    ("headers", "code"), [(None, "MISSING_FIELD"), ("text", "INVALID_FIELD"), ([], "INVALID_FIELD")]
)
def test_headers_are_an_object(headers: Any, code: str) -> None:
    """In both layouts, headers are required and must be an object."""
    body = {"data": ROW, "headers": headers}
    assert (code, "$.headers") == refusal(dialect(), body)
    assert (code, "$.message.headers") == refusal(dialect(), enveloped(body))


def test_empty_schema_id_is_none() -> None:
    """An empty messageSchemaId means no metadata, like null."""
    assert change(dialect(), enveloped(bare("INSERT", ROW))) == change(dialect(), enveloped(bare("INSERT", ROW), ""))
