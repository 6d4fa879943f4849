"""The fast paths accept no text that the plain path rejects, and write the same result."""

from datetime import datetime
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.translator.values.outcome import outcome
from tests.translator.values.test_times import CHANGING, near_a_change
from translator.values import Converter, converter, timestamptz_in, zone
from translator.values.numbers import (
    INTEGER_BOUNDS,
    to_bounded_integer,
    to_decimal,
    to_float32,
    to_float64,
    to_scaled_decimal,
    to_uint64,
)
from translator.values.times import to_date, to_time, to_timestamp, to_timestamptz

PLAIN: dict[str, Converter] = {
    **{name: partial(to_bounded_integer, *bounds) for name, bounds in INTEGER_BOUNDS.items()},
    "uint64": to_uint64,
    "decimal": to_decimal,
    "decimal(9,2)": partial(to_scaled_decimal, 9, 2),
    "decimal(3,0)": partial(to_scaled_decimal, 3, 0),
    "decimal(2,2)": partial(to_scaled_decimal, 2, 2),
    "decimal(3,5)": partial(to_scaled_decimal, 3, 5),
    "decimal(3,-2)": partial(to_scaled_decimal, 3, -2),
    "float32": to_float32,
    "float64": to_float64,
    "date": to_date,
    "time": to_time,
    "timestamp": to_timestamp,
    "timestamptz": partial(to_timestamptz, None),
}

NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**66), 2**66).map(str),
    st.decimals(allow_nan=False, places=2, min_value=-(10**8), max_value=10**8).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats().map(str),
    st.floats(width=32).map(str),
)
DAYS = st.datetimes().map(lambda moment: moment.isoformat(" ")) | st.dates().map(str)
CLOCKS = st.from_regex(r"-?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,10})?", fullmatch=True)
ZONES = st.sampled_from(("Z", "UTC", " UTC", "+00:00", "-08", "+0530", "+24:00", " +08:00"))
SPELLED = NUMBERS | DAYS | CLOCKS | st.builds("{}{}".format, DAYS, ZONES)
# Characters of ISO 8601 and other scripts, and what numbers and strip() treat as whitespace.
STRANGE = "0123456789+-.,:TZtz eE_WX \n\x1c\x85٣３²\ud800"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Generate text as writers spell it, with at most two characters removed, added or replaced."""
    text = draw(SPELLED)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.text(STRANGE, max_size=1)) + text[place + draw(st.integers(0, 1)) :]
    return text


OTHERS = st.one_of(
    st.text(),
    st.binary(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.floats(width=32),
    st.decimals(),
    st.decimals(places=2, min_value=-(10**8), max_value=10**8),
)


def as_written(found: object) -> tuple[type, str]:
    """Distinguish 1, 1.0 and "1", and -0.0 from 0.0."""
    return type(found), repr(found)


@pytest.mark.parametrize("name", PLAIN)
@given(value=texts() | OTHERS)
@example("2024-W01-1")
@example("20240101")
@example("2024-05-06 24:00:00")
@example("2024-05-06 07:08+01")
@example("-0.00")
@example("7\n")
@example("1_000")
@example("1.1754943508222875e-38")
@example("3.4028235e38")
@example("18446744073709551616")
@example("1" * 400)
@example("0." + "0" * 399 + "1")
@example(Decimal("1.50"))
@example(Decimal("1E+2"))
@example(True)
def test_the_same_either_way(name: str, value: object) -> None:
    """For any value, the converter gives the plain path's result."""
    assert as_written(outcome(PLAIN[name], value)) == as_written(outcome(converter(name), value))


@given(st.integers(1, 40), st.integers(-5, 40), texts() | OTHERS)
def test_any_decimal_type(precision: int, scale: int, value: object) -> None:
    """The same holds for every precision and scale."""
    plain = partial(to_scaled_decimal, precision, scale)
    assert as_written(outcome(plain, value)) == as_written(outcome(converter(f"decimal({precision},{scale})"), value))


@given(st.integers(1, 20), st.integers(0, 20), st.data())
def test_decimals_at_the_bounds(precision: int, scale: int, data: st.DataObject) -> None:
    """The same holds for numbers with as many digits as the type has, one fewer and one more."""
    digits = data.draw(st.integers(max(precision - 1, 1), precision + 1))
    unscaled = data.draw(st.integers(10 ** (digits - 1), 10**digits - 1))
    places = data.draw(st.integers(max(scale - 1, 0), scale + 1))
    value = f"{data.draw(st.sampled_from(('', '-')))}{Decimal(unscaled).scaleb(-places):f}"
    plain = partial(to_scaled_decimal, precision, scale)
    assert as_written(outcome(plain, value)) == as_written(outcome(converter(f"decimal({precision},{scale})"), value))


@given(st.one_of(st.none(), st.sampled_from(CHANGING), st.just("+05:30")), texts())
def test_any_zone(name: str | None, text: str) -> None:
    """The same holds for times in every time zone, or in none."""
    plain = partial(to_timestamptz, zone(name) if name is not None else None)
    assert as_written(outcome(plain, text)) == as_written(outcome(timestamptz_in(name), text))


@given(near_a_change())
def test_when_clocks_are_set(drawn: tuple[str, datetime]) -> None:
    """The same holds around the moments when a zone's offset changes."""
    name, local = drawn
    plain, text = partial(to_timestamptz, zone(name)), local.isoformat(" ")
    assert as_written(outcome(plain, text)) == as_written(outcome(timestamptz_in(name), text))
