"""JSON values become column values exactly, or are rejected."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.events.arrow_values import column, fits, image, image_value, is_exactly

# Enough values to be converted together.
MANY = 64

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 123456)


@pytest.mark.parametrize(
    ("value", "sql", "expected"),
    [
        (True, "boolean", True),
        (-128, "tinyint", -128),
        ("42", "int", 42),
        ("42.0", "int", 42),
        ("18446744073709551615", "decimal(20,0)", Decimal(2**64 - 1)),
        ("1.5", "decimal(10,4)", Decimal("1.5000")),
        ("1E+2", "decimal(10,2)", Decimal("100.00")),
        (7, "decimal(10,2)", Decimal("7.00")),
        (Decimal("0.1"), "double", 0.1),
        ("-Infinity", "double", float("-inf")),
        (10**20, "double", 1e20),
        ("text", "string", "text"),
        (False, "string", "false"),
        (5, "string", "5"),
        ("AP8=", "binary", b"\x00\xff"),
        ("0001-01-01", "date", date(1, 1, 1)),
        ("2026-01-02T03:04:05.123456000", "timestamp_ntz", MOMENT),
        ("2026-01-02T03:04:05.123456Z", "timestamp", MOMENT.replace(tzinfo=UTC)),
        (None, "int", None),
        (None, "double", None),
        (None, "float", None),
        (Decimal("2.0"), "int", 2),
        ("9" * 38, "decimal(38,0)", Decimal("9" * 38)),
        ("0." + "9" * 38, "decimal(38,38)", Decimal("0." + "9" * 38)),
        ("9999-12-31T23:59:59.999999Z", "timestamp", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    ],
)
def test_what_fits(value: Any, sql: str, expected: Any) -> None:
    """A value that fits its column arrives exactly, and survives another round trip through an image."""
    assert [expected] == column([value], sql).to_pylist()
    assert [expected] == column([image_value(expected)], sql).to_pylist()
    assert [expected] * MANY == column([value] * MANY, sql).to_pylist()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324])
def test_a_float_in_an_image(value: float) -> None:
    """Compared as text, because NaN is not equal to itself and zero has two signs."""
    assert [repr(value)] == list(map(repr, column([image_value(value)], "double").to_pylist()))


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (1, "boolean"),
        (True, "int"),
        (128, "tinyint"),
        ("1.5", "int"),
        ("1_000", "int"),
        (Decimal("1.5"), "int"),
        ("1e999999999", "bigint"),
        ("9" * 39, "decimal(38,0)"),
        ("99", "decimal(38,38)"),
        ("1001911090", "decimal(38,35)"),
        ("1.55", "decimal(10,1)"),
        ("NaN", "decimal(10,1)"),
        (" 1", "decimal(10,1)"),
        ("٣", "decimal(10,1)"),
        ("1e999", "double"),
        ("1e39", "float"),
        ("nan", "double"),
        (["a"], "string"),
        ({"a": 1}, "string"),
        ("AP8", "binary"),
        ("A P8=", "binary"),
        ("2026-02-30", "date"),
        ("0000-00-00", "date"),
        ("0000-01-01", "date"),
        (20260101, "date"),
        ("9999-12-31T23:59:59-01:00", "timestamp"),
        ("2026-01-02T03:04:05.1234567", "timestamp_ntz"),
        ("2026-01-02T03:04:05Z", "timestamp_ntz"),
        ("2026-01-02T03:04:05", "timestamp"),
        ("2026-01-02T24:00:01", "timestamp_ntz"),
    ],
)
def test_what_does_not_fit(value: Any, sql: str) -> None:
    """A value that its column cannot hold exactly is an error that does not show the value."""
    assert not fits(value, sql)
    with pytest.raises(ValueError, match=r"the value cannot be stored exactly as") as caught:
        column([None, value], sql)
    assert str(value) not in str(caught.value).replace(sql, "")
    with pytest.raises(ValueError, match=r"the value cannot be stored exactly as"):
        column([None] * MANY + [value], sql)


@pytest.mark.parametrize(
    ("value", "sql", "expected"),
    [
        (127, "tinyint", True),
        (128, "tinyint", False),
        ("5.00", "int", True),
        (Decimal("5.5"), "int", False),
        ("-0", "int", False),
        (Decimal("-0.0"), "int", False),
        ("-0.01", "decimal(3,2)", True),
        ("NaN", "int", False),
        ("1e400", "bigint", False),
        (None, "int", True),
    ],
)
def test_numbers_of_a_narrower_type(value: Any, sql: str, expected: bool) -> None:
    """A number of a narrower type fits unchanged, but the sign of a zero would be lost."""
    assert expected == is_exactly(value, sql)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20))
def test_decimals_are_exact(number: Decimal) -> None:
    """Every decimal of 38 digits is preserved digit by digit."""
    for count in (1, MANY):
        assert [number] * count == column([f"{number:f}"] * count, "decimal(38,6)").to_pylist()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_exact(number: float) -> None:
    """The shortest text of a double restores it exactly."""
    assert [number] == column([image(f'{{"v":{number!r}}}')["v"]], "double").to_pylist()


ANY = st.none() | st.booleans() | st.integers() | st.decimals() | st.text(max_size=40) | st.floats().map(repr)
SQL = ["boolean", "tinyint", "smallint", "int", "bigint", "decimal(5,2)", "decimal(38,10)", "float", "double", "string"]
SQL += ["binary", "date", "timestamp", "timestamp_ntz"]


@given(st.lists(ANY, max_size=5), st.sampled_from(SQL))
def test_null_is_null_and_nothing_else(values: list[Any], sql: str) -> None:
    """C13: for any input, a column is NULL exactly where NULL was sent. Anything else that does not fit is an error."""
    try:
        written = column(values, sql)
    except ValueError:
        return
    assert [value is None for value in values] == written.is_null().to_pylist()


@given(st.integers(-(2**70), 2**70), st.sampled_from(["tinyint", "smallint", "int", "bigint", "decimal(20,0)"]))
def test_integers_are_exact_or_refused(number: int, sql: str) -> None:
    """C13: 2^53+1 and the maximum uint64 are preserved as numbers and as text. Larger values are rejected."""
    for sent in (number, str(number)):
        assert not fits(sent, sql) or [number] == column([sent], sql).to_pylist()


@pytest.mark.parametrize(
    "text",
    ["[1]", "1", "", "{", "null", '{"a":1} x', '{"a":' + "[" * 50000, '{"a":1e' + "9" * 20, b"", b'{"a":"\xff"}'],
    ids=lambda text: repr(text[:9]),
)
def test_no_image(text: str | bytes) -> None:
    """An image must be one JSON object."""
    with pytest.raises(ValueError, match="not a JSON object"):
        image(text)
