"""Values of each canonical type are exact or text. A value that does not fit its type is rejected."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.reader import ExactText
from cdc_core.reader.values import canonical_text, python_value
from translator.values import CANONICAL_TYPES

VALUES: list[tuple[str, Any, Any]] = [
    ("boolean", True, True),
    *((name, 7, 7) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")),
    ("int64", -(2**63), -(2**63)),
    ("uint64", "18446744073709551615", 2**64 - 1),
    ("decimal(9,2)", "12.50", Decimal("12.50")),
    ("decimal", "-0.000", Decimal("-0.000")),
    ("float32", 0.1, 0.1),
    ("float64", 3, 3.0),
    ("float64", "-Infinity", -math.inf),
    ("string", "", ""),
    ("bytes", "AP8=", b"\x00\xff"),
    ("geometry", "", b""),
    ("date", "0001-01-01", date(1, 1, 1)),
    ("time", "10:00:00.5", timedelta(hours=10, microseconds=500_000)),
    ("time", "-838:59:59", -timedelta(hours=838, minutes=59, seconds=59)),
    ("time", "10:00:00.123456789", "10:00:00.123456789"),
    ("timestamp", "2020-02-29T23:59:59.123456000", datetime(2020, 2, 29, 23, 59, 59, 123456)),
    ("timestamp", "2020-02-29T23:59:59.1234567", "2020-02-29T23:59:59.1234567"),
    ("timestamptz", "2020-02-29T23:59:59Z", datetime(2020, 2, 29, 23, 59, 59, tzinfo=UTC)),
    ("timestamptz", "2020-02-29T23:59:59.123456700Z", "2020-02-29T23:59:59.1234567Z"),
    ("interval", "1 day", "1 day"),
    ("uuid", "0", "0"),
    ("json", "[1]", "[1]"),
    ("enum", "a", "a"),
    ("set", "a,b", "a,b"),
    ("unknown", "12.5", "12.5"),
    ("a type of a later release", True, True),
]


@pytest.mark.parametrize(("canonical", "value", "expected"), VALUES, ids=str)
def test_values(canonical: str, value: Any, expected: Any) -> None:
    found = python_value(canonical, value)
    assert expected == found
    assert isinstance(found, ExactText) == (isinstance(expected, str) and canonical.startswith("time"))
    assert (type(found) is type(expected)) or isinstance(found, ExactText)
    assert python_value(canonical, None) is None


def test_every_type_takes_part() -> None:
    """The table above covers every canonical type."""
    assert set(CANONICAL_TYPES) <= {canonical for canonical, *_ in VALUES}


@pytest.mark.parametrize(
    ("canonical", "value"),
    [
        *(("int32", wrong) for wrong in (1.5, True, "1.0", "", "٣")),
        *(("decimal(9,2)", wrong) for wrong in ("1e3", "NaN", 1.5, "", "1_0", True)),
        *(("float64", wrong) for wrong in ("1e3", "nan", True)),
        *(("boolean", wrong) for wrong in ("true", 1)),
        *(("bytes", wrong) for wrong in ("A", "é", 1)),
        *(("date", wrong) for wrong in ("2020-02-30", "20200201", 1)),
        *(("timestamp", wrong) for wrong in ("2020-02-01T00:00:00Z", "2020-02-01", "2020-02-01T24:00:00")),
        *(("timestamptz", wrong) for wrong in ("2020-02-01T00:00:00", "2020-02-01T00:00:00+01:00")),
        *(("time", wrong) for wrong in ("1:00:00", "00:60:00")),
        *((text, 1) for text in ("string", "uuid", "enum")),
        ("unknown", [1]),
    ],
    ids=str,
)
def test_what_is_none_of_its_type(canonical: str, value: Any) -> None:
    """The value is rejected, and the error does not show it."""
    with pytest.raises(ValueError, match=r"not in the form of|a list or an object") as caught:
        python_value(canonical, value)
    assert caught.value.__cause__ is None


@given(
    st.datetimes()
    | st.dates()
    | st.timedeltas(timedelta(-34), timedelta(34))
    | st.decimals(allow_nan=False, allow_infinity=False)
)
def test_text_and_back(value: Any) -> None:
    """The SQL store keeps values as the text of images, to the last digit."""
    types = {datetime: "timestamp", date: "date", timedelta: "time", Decimal: "decimal"}
    assert value == python_value(types[type(value)], canonical_text(value))


@given(st.datetimes(timezones=st.just(UTC)))
def test_zone_and_back(value: datetime) -> None:
    """A point in time is stored in UTC."""
    assert value == python_value("timestamptz", canonical_text(value))
