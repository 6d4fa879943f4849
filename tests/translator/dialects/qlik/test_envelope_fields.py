"""Headers of Qlik data messages: sequence, time and transaction (§1 and 4)."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.envelope import Tx
from tests.translator.dialects.qlik.messages import SEQUENCE, bare, change, dialect, refusal

ROW = {"id": 1, "name": "a"}


@pytest.mark.requirement("qlik.headers.2")
def test_full_load_headers() -> None:
    """In a full load, empty text, null and a missing member are the same."""
    read = change(dialect(), bare("REFRESH", ROW, changeSequence="", timestamp="", transactionId="", changeMask=None))
    assert (None, None, None, None) == (read.pos_native, read.ts_commit_us, read.tx, read.notes)


@pytest.mark.requirement("qlik.headers.2", "qlik.headers.5", "qlik.test_inputs.4")
def test_change_sequence() -> None:
    """The sequence is the native position, verbatim. One without 35 digits is noted."""
    read = change(dialect(), bare("INSERT", ROW, changeSequence=SEQUENCE))
    assert (SEQUENCE, None) == (read.pos_native, read.notes)
    for irregular in (SEQUENCE[1:], SEQUENCE + "0", "100", " " + SEQUENCE[1:], SEQUENCE[1:] + "٣"):
        read = change(dialect(), bare("INSERT", ROW, changeSequence=irregular))
        assert (irregular, ["CHANGE_SEQUENCE_IRREGULAR"]) == (read.pos_native, read.notes)


@pytest.mark.requirement("qlik.headers.2")
@pytest.mark.parametrize(
    ("begin", "regular"),
    [
        ("2023091103232500", True),
        ("2024022923595999", True),
        ("2023123100000000", True),
        ("2023022900000000", False),
        ("2023043100000000", False),
        ("2023130100000000", False),
        ("2023000100000000", False),
        ("2023010024000000", False),
        ("2023010100600000", False),
        ("2023010100006000", False),
        ("0000010100000000", False),
    ],
)
def test_change_sequence_begins_with_a_time(begin: str, regular: bool) -> None:
    """Date, time and hundredths precede the number. 35 digits with another meaning are noted."""
    read = change(dialect(), bare("INSERT", ROW, changeSequence=begin + "0" * 18 + "5"))
    assert (None if regular else ["CHANGE_SEQUENCE_IRREGULAR"]) == read.notes


@pytest.mark.requirement("qlik.headers.3")
@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T00:00:01.5", 1_500_000),
        ("1970-01-01 00:00:00.000001", 1),
        ("1970-01-01T00:00:00.123456999", 123_456),
        ("1969-12-31T23:59:59.999999", -1),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T08:00:00+08:00", 0),
        ("1970-01-01T00:00:00-0130", 5_400_000_000),
        ("2023-09-11T03:23:25.000", 1_694_402_605_000_000),
        ("9999-12-31T23:59:59.999-23:59", 253_402_387_139_999_000),
        ("", None),
        (None, None),
    ],
)
def test_timestamp(text: str | None, micros: int | None) -> None:
    """A timestamp is UTC by default, and can be missing."""
    assert micros == change(dialect(), bare("INSERT", ROW, timestamp=text)).ts_commit_us


@pytest.mark.requirement("qlik.headers.3")
@pytest.mark.parametrize(
    "wrong",
    [
        "1000",
        "now",
        "2023-09-11",
        "2023-09-11T03:23",
        "2023-09-11T24:00:00",
        "2023-02-30T00:00:00",
        "0000-01-01T00:00:00",
        "2023-09-11T03:23:25.",
        "2023-09-11T03:23:25.0000000001",
        "2023-09-11T03:23:25+24:00",
        "２０２３-09-11T03:23:25",
        True,
        [],
        {},
    ],
)
def test_timestamp_that_is_no_time(wrong: Any) -> None:
    """Text that is not a time is rejected without quoting it."""
    assert ("INVALID_FIELD", "$.headers.timestamp") == refusal(dialect(), bare("INSERT", ROW, timestamp=wrong))


@pytest.mark.requirement("qlik.headers.3")
@pytest.mark.parametrize("number", [1000, 0, 1.5])
def test_numeric_timestamp(number: float) -> None:
    """A number has no stated unit, so no time is known, and a note says so."""
    read = change(dialect(), bare("INSERT", ROW, timestamp=number))
    assert (None, ["TIMESTAMP_UNREADABLE"]) == (read.ts_commit_us, read.notes)


@pytest.mark.requirement("qlik.headers.4")
def test_transaction() -> None:
    """The transaction is what the message says about it, which never includes its size."""
    told = {"transactionId": "60008", "transactionEventCounter": 2, "transactionLastEvent": True}
    assert Tx("60008", 2, None, True) == change(dialect(), bare("INSERT", ROW, **told)).tx
    assert Tx("60008") == change(dialect(), bare("INSERT", ROW, transactionId="60008")).tx
    assert change(dialect(), bare("INSERT", ROW, transactionEventCounter=1)).tx is None


@pytest.mark.requirement("qlik.headers.4")
def test_counter_of_zero() -> None:
    """Counting starts at 1, so the event has no place in its transaction. Everything else is kept."""
    told = {"transactionId": "60008", "transactionEventCounter": 0, "transactionLastEvent": True}
    assert Tx("60008", None, None, True) == change(dialect(), bare("INSERT", ROW, **told)).tx


@pytest.mark.requirement("qlik.headers.4")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("transactionEventCounter", -1),
        ("transactionEventCounter", True),
        ("transactionEventCounter", "1"),
        ("transactionEventCounter", 2**63),
        ("transactionLastEvent", 1),
        ("transactionLastEvent", "true"),
        ("transactionId", 5),
        ("changeSequence", 5),
        ("columnMask", 1),
        ("changeMask", ["01"]),
    ],
)
def test_header_of_wrong_type(name: str, wrong: Any) -> None:
    """A header of another type or out of range is rejected."""
    assert ("INVALID_FIELD", f"$.headers.{name}") == refusal(dialect(), bare("INSERT", ROW, **{name: wrong}))


@pytest.mark.requirement("qlik.decode.3")
def test_unknown_headers_are_left_alone() -> None:
    """Headers that Replicate adds later have no effect."""
    plain = change(dialect(), bare("INSERT", ROW))
    assert plain == change(dialect(), bare("INSERT", ROW, externalSchemaId=None, streamPosition="1;2", novelty={}))
