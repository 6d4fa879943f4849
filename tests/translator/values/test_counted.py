"""Counts of days and of fractions of a second, and unscaled decimals, as in Avro's logical types."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.values.outcome import NOT_A_NUMBER, NOT_AN_INTEGER, OUT_OF_RANGE, PRECISION, Issue, check
from translator.values import clock_of, converter, date_of_days, local_of, unscaled_decimal


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, "1970-01-01"),
        (8729, "1993-11-25"),
        (-1, "1969-12-31"),
        (-719_162, "0001-01-01"),
        (2_932_896, "9999-12-31"),
        (-719_163, OUT_OF_RANGE),
        (2_932_897, OUT_OF_RANGE),
        (2**63 - 1, OUT_OF_RANGE),
        ("1", NOT_AN_INTEGER),
        (True, NOT_AN_INTEGER),
    ],
)
def test_days(days: object, expected: object) -> None:
    """Every day of the calendar has a number, and no other number is a day."""
    check(date_of_days, days, expected)


@pytest.mark.parametrize(
    ("digits", "count", "expected"),
    [
        (3, 0, "00:00:00"),
        (3, 1, "00:00:00.001"),
        (3, 86_399_999, "23:59:59.999"),
        (6, 3_600_000_000, "01:00:00"),
        (6, 3_661_000_010, "01:01:01.000010"),
        (3, 86_400_000, Issue("INVALID_TIME")),
        (3, -1, Issue("INVALID_TIME")),
        (3, 1.5, NOT_AN_INTEGER),
    ],
)
def test_clock(digits: int, count: object, expected: object) -> None:
    """A time of day in its unit has a fraction with all digits of the unit, or none."""
    check(clock_of(digits), count, expected)


@pytest.mark.parametrize(
    ("digits", "count", "expected"),
    [
        (6, 0, "1970-01-01T00:00:00"),
        (6, -1, "1969-12-31T23:59:59.999999"),
        (6, 1_679_408_074_000_000, "2023-03-21T14:14:34"),
        (3, 1_500, "1970-01-01T00:00:01.500"),
        (9, 1, "1970-01-01T00:00:00.000000001"),
        (6, 253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
        (6, 253_402_300_800_000_000, OUT_OF_RANGE),
        (3, 2**63 - 1, OUT_OF_RANGE),
        (6, -(2**63), OUT_OF_RANGE),
    ],
)
def test_local(digits: int, count: int, expected: object) -> None:
    """A local time is right, even before 1970."""
    check(local_of(digits), count, expected)


@pytest.mark.parametrize(
    ("precision", "scale", "raw", "expected"),
    [
        (20, 6, b"\x00", "0.000000"),
        (20, 6, b"\xff", "-0.000001"),
        (9, 2, b"\x04\xd2", "12.34"),
        (9, 2, b"\xfb\x2e", "-12.34"),
        (9, 2, b"\x00\x00\x00\x04\xd2", "12.34"),
        (20, 0, bytes.fromhex("00ffffffffffffffff"), "18446744073709551615"),
        (4, -2, b"\x0c", "1200"),
        (4, -2, b"\x00", "0"),
        (2, 5, b"\x0c", "0.00012"),
        (0, 0, b"\x7f" * 20, str(int("7f" * 20, 16))),
        (3, 0, b"\x03\xe8", PRECISION),
        (3, 0, b"", NOT_A_NUMBER),
        (3, 0, "12", NOT_A_NUMBER),
        (0, 0, b"\x7f" * 834, OUT_OF_RANGE),
        (0, 0, b"\x7f" * 8_000_000, OUT_OF_RANGE),
    ],
)
def test_unscaled(precision: int, scale: int, raw: object, expected: object) -> None:
    """A decimal is two's complement, big-endian, with the schema's scale, neither rounded nor too wide."""
    check(unscaled_decimal(precision, scale), raw, expected)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_unscaled_is_the_number(unscaled: int, scale: int) -> None:
    """The result equals the type's converter applied to the number."""
    raw = unscaled.to_bytes(17, "big", signed=True)
    exact = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    assert converter(f"decimal(38,{scale})")(exact) == unscaled_decimal(38, scale)(raw)
