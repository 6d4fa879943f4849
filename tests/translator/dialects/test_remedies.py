"""Errors that new users meet first say what to change: the option, the profile or the writer."""

from __future__ import annotations

import json

import pytest

from tests.translator.dialects.canal import messages as canal
from tests.translator.dialects.qlik import messages as qlik
from tests.translator.dialects.shareplex import messages as shareplex
from translator.dialects import build
from translator.errors import MessageError
from translator.message import Dialect, Message, Setup

CANAL = json.dumps(canal.UPDATE)
QLIK = json.dumps(qlik.bare("INSERT", {"id": 1}))
SHAREPLEX = json.dumps(shareplex.body("ins", data={"ID": 1}))
RECORD = "configure the writer to send each message in a separate record"


def reason(dialect: Dialect, value: str) -> tuple[str, str]:
    """Return the code and reason of a value's dead letter."""
    with pytest.raises(MessageError) as caught:
        dialect.decode(Message("t", 0, 0, 0, None, value.encode()))
    return caught.value.code.value, caught.value.reason


@pytest.mark.parametrize("between", ["", "\n", "\r\n", " "])
@pytest.mark.parametrize(
    ("name", "message", "remedy"), [("canal", CANAL, "newline_batches: true"), ("qlik", QLIK, RECORD)]
)
def test_several_messages_in_a_record(name: str, message: str, remedy: str, between: str) -> None:
    """The messages are one per line or end to end."""
    for value in (between.join([message] * 3), f"\ufeff{message}{between}{message}\n", message + '{"a":"\\ud800"}'):
        code, said = reason(build(name, Setup("s"), {}), value)
        assert "MALFORMED_JSON" == code
        assert "Does the record contain several messages" in said
        assert remedy in said


@pytest.mark.parametrize("rest", ["}", "x", '{"a":', "]", "\\", "1e99999999999999999999"])
@pytest.mark.parametrize(("name", "message"), [("canal", CANAL), ("qlik", QLIK)])
def test_what_follows_and_is_no_message(name: str, message: str, rest: str) -> None:
    """The error gives no advice to read garbage."""
    code, said = reason(build(name, Setup("s"), {}), message + rest)
    assert "MALFORMED_JSON" == code
    assert "several messages" not in said


@pytest.mark.parametrize(
    ("name", "message", "code", "remedy"),
    [
        ("qlik", QLIK, "FRAMING", RECORD),
        ("shareplex", SHAREPLEX, "UNSUPPORTED_SHAPE", "one per line"),
    ],
)
def test_an_array_of_messages(name: str, message: str, code: str, remedy: str) -> None:
    """Some gateways turn a batch into an array."""
    found, said = reason(build(name, Setup("s"), {}), f" [{message},{message}]")
    assert code == found
    assert remedy in said


@pytest.mark.parametrize("profile", ["oss", "dts", "ticdc"])
@pytest.mark.parametrize("cell", [1, 1.5, True, [1]])
def test_cells_that_are_no_text(profile: str, cell: object) -> None:
    """Another tool than the declared one wrote them, and its profile can read them."""
    error = canal.refused(canal.of_type("INSERT", [{"id": cell}]), profile=profile)
    assert "INVALID_FIELD" == error.code
    assert "declare profile flink_cdc" in error.reason
