"""Zones and units of time (§4.4)."""

from typing import Any

import pytest

from tests.translator.dialects.dts_avro.composer import Cell, date_time, local, row, timestamp, zoned
from tests.translator.dialects.dts_avro.messages import MYSQL, ORACLE, POSTGRESQL, row_of, value_of


@pytest.mark.requirement("dts_avro.values.4")
@pytest.mark.parametrize(
    ("expected", "zone"),
    [
        ("2023-10-17T07:02:00Z", "+08:00"),
        ("2023-10-17T07:02:00Z", "GMT+8"),
        ("2023-10-17T18:32:00Z", "UTC-03:30"),
        ("2023-10-17T06:59:45Z", "+8:02:15"),
        ("2023-10-17T07:02:00Z", "8"),
        ("2023-10-17T15:02:00Z", "UTC"),
        ("2023-10-17T15:02:00Z", "GMT"),
        ("2023-10-17T07:02:00Z", "Asia/Shanghai"),
        (("UNKNOWN_ZONE", "2023-10-17T15:02:00Mars/Base"), "Mars/Base"),
        (("UNKNOWN_ZONE", "2023-10-17T15:02:00+99"), "+99"),
        (("UNKNOWN_ZONE", "2023-10-17T15:02:00" + "x" * 237), "x" * 5000),
        (("UNKNOWN_ZONE", "2023-10-17T15:02:00"), ""),
    ],
)
def test_zones(expected: object, zone: str) -> None:
    """The zone is applied in every spelling that the vendor's code accepts. An unknown one is an issue."""
    cell = zoned(zone, year=2023, month=10, day=17, hour=15, minute=2, second=0)
    assert ("timestamptz", expected) == value_of(POSTGRESQL, 1184, cell)


@pytest.mark.parametrize(
    ("code", "year", "month", "hour"),
    [
        ("OUT_OF_RANGE", 10000, 1, 1),
        ("ZERO_DATE", 0, 1, 1),
        ("INVALID_DATE", 2023, 13, 1),
        ("INVALID_TIME", 2023, 1, 24),
    ],
)
def test_no_time_with_or_without_a_zone(code: str, year: int, month: int, hour: int) -> None:
    """An invalid date or time has the same code in a column with a zone and in one without."""
    parts = {"year": year, "month": month, "day": 1, "hour": hour, "minute": 0, "second": 0}
    for number, cell in ((1114, date_time(**parts)), (1184, zoned("+08:00", **parts))):
        _, (found, _) = value_of(POSTGRESQL, number, cell)
        assert code == found


@pytest.mark.parametrize(
    ("month", "day", "instant", "note"),
    [(10, 29, "2023-10-29T00:30:00Z", "TZ_OVERLAP=c"), (3, 26, "2023-03-26T01:30:00Z", "TZ_GAP=c")],
)
def test_a_local_time_that_is_not_one_moment(month: int, day: int, instant: str, note: str) -> None:
    """When clocks are set back, an hour occurs twice, and when set forward, never. The row notes the chosen moment."""
    cell = zoned("Europe/Berlin", year=2023, month=month, day=day, hour=2, minute=30, second=0)
    change = row_of(row("INSERT", {"c": (1184, cell)}, source=POSTGRESQL))
    assert ({"c": instant}, None) == (change.after, change.issues)
    assert note in (change.notes or ())


@pytest.mark.requirement("dts_avro.reject.6", "dts_avro.values.3")
@pytest.mark.parametrize(
    ("expected", "source", "given"),
    [
        ("000008", MYSQL, {}),
        ("000008", POSTGRESQL, {}),
        ("000000008", ORACLE, {}),
        ("000000008", ("DB2", "11"), {}),
        ("000000008", POSTGRESQL, {"sourcePosition": "1<->2"}),
        ("000000008", MYSQL, {"options": {"fraction_unit": "nanos"}}),
        ("000008", ORACLE, {"options": {"fraction_unit": "micros"}}),
    ],
)
def test_the_unit_of_a_fraction(expected: str, source: tuple[str, str], given: dict[str, Any]) -> None:
    """Fractions are micros for MySQL and PostgreSQL without the physical-log reader, else nanos, unless declared."""
    cell = local(2023, 10, 17, 15, 2, 0, 8)
    assert ("timestamp", f"2023-10-17T15:02:00.{expected}") == value_of(
        source, 77_777, cell, declared="timestamp", **given
    )


@pytest.mark.requirement("dts_avro.reject.6")
@pytest.mark.parametrize(
    ("expected", "number", "cell"),
    [
        ("2023-10-17T15:02:00.001000000", 12, local(2023, 10, 17, 15, 2, 0, 10**6)),
        ("2023-10-17T15:02:00.999999999", 18, local(2023, 10, 17, 15, 2, 0, 10**9 - 1)),
        ("-00:00:01.500000000", 11, date_time(hour=0, minute=0, second=-1, millis=-500_000_000)),
        ("1970-01-01T00:00:01.123456789Z", 7, timestamp(1, 123_456_789)),
    ],
)
def test_a_fraction_too_large_for_micros_is_nanos(expected: str, number: int, cell: Cell) -> None:
    """A value too large for micros is read as nanos with a note. With a declared unit, it is an issue."""
    value = row("INSERT", {"c": (number, cell)})
    change = row_of(value)
    assert ({"c": expected}, ["FRACTION_AS_NANOS=c"], None) == (change.after, change.notes, change.issues)
    (issue,) = row_of(value, fraction_unit="micros").issues or ()
    assert "FRACTION_OUT_OF_RANGE" == issue.code


def test_a_fraction_too_large_is_converted_all_the_same() -> None:
    """Even as nanos, it is an issue if the declared type cannot hold the time."""
    cell = local(2023, 10, 17, 15, 2, 0, 10**6)
    raw = "2023-10-17T15:02:00.001000000"
    assert ("int32", ("NOT_AN_INTEGER", raw)) == value_of(MYSQL, 12, cell, declared="int32")


@pytest.mark.requirement("dts_avro.reject.6")
@pytest.mark.parametrize("source", [MYSQL, ORACLE])
def test_a_second_has_less_than_ten_to_the_nine_parts(source: tuple[str, str]) -> None:
    """Such a fraction does not exist in any unit."""
    _, found = value_of(source, 77_777, local(2023, 10, 17, 15, 2, 0, 10**9), declared="timestamp")
    assert ("FRACTION_OUT_OF_RANGE", "2023 10 17 15 2 0 1000000000") == found


def test_a_zone_and_a_fraction_too_large() -> None:
    """A zoned time has the same unit."""
    cell = zoned("+08:00", year=2023, month=10, day=17, hour=15, minute=2, second=0, millis=123_456_789)
    change = row_of(row("INSERT", {"c": (1184, cell)}, source=POSTGRESQL))
    assert ({"c": "2023-10-17T07:02:00.123456789Z"}, ["FRACTION_AS_NANOS=c"]) == (change.after, change.notes)
