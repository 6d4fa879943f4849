"""Numbers are exact or an issue, compared with Python's own numbers over their whole range."""

import struct
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.translator.values.outcome import OUT_OF_RANGE, PRECISION, SCALE, outcome
from translator.values import converter
from translator.values.numbers import INTEGER_BOUNDS


class TestIntegers:
    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [
            ("int8", -128, 127),
            ("int16", -32768, 32767),
            ("int32", -2147483648, 2147483647),
            ("int64", -9223372036854775808, 9223372036854775807),
            ("uint8", 0, 255),
            ("uint16", 0, 65535),
            ("uint32", 0, 4294967295),
            ("uint64", 0, 18446744073709551615),
        ],
    )
    def test_bounds(self, name: str, low: int, high: int) -> None:
        """Both ends of a type are valid, and the next number on either side is an issue, as text and as number."""
        convert = converter(name)
        written = str if name == "uint64" else int
        for spelled in (int, str):
            assert [written(low), written(high)] == [convert(spelled(low)), convert(spelled(high))]
            assert [OUT_OF_RANGE] * 2 == [outcome(convert, spelled(low - 1)), outcome(convert, spelled(high + 1))]

    @given(st.integers() | st.integers(-(2**66), 2**66), st.sampled_from(sorted(INTEGER_BOUNDS)))
    def test_exact(self, number: int, name: str) -> None:
        """An integer given as text, number or with a point is unchanged if the type holds it, otherwise an issue."""
        low, high = INTEGER_BOUNDS[name]
        expected: object = number if low <= number <= high else OUT_OF_RANGE
        if name == "uint64" and isinstance(expected, int):
            expected = str(expected)
        for spelled in (number, str(number), f"{number:+}", f"{number:030d}", Decimal(number), Decimal(f"{number}.00")):
            assert expected == outcome(converter(name), spelled)

    @given(st.integers())
    def test_without_bounds(self, number: int) -> None:
        """Without a type's limits, an integer of any size is written in full."""
        for name in ("decimal", "unknown", "string"):
            assert str(number) == converter(name)(number)


def _spellings(number: Decimal) -> list[str]:
    """Return a number in one of the writers' spellings."""
    plus = "" if number.is_signed() else "+"
    return [str(number), format(number, "e"), format(number, "f"), f" {plus}{number} "]


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Generate numbers with up to 80 digits and any exponent that is allowed."""
    sign, coefficient = draw(st.booleans()), draw(st.integers(0, 10**80))
    exponent = draw(st.integers(-400, 400))
    return Decimal((int(sign), tuple(map(int, str(coefficient))), exponent))


class TestDecimals:
    @given(decimals())
    def test_exact(self, number: Decimal) -> None:
        """With any scale, exponent and spelling, a decimal is written plainly and keeps its value."""
        for spelled in (number, *_spellings(number)):
            text = converter("decimal")(spelled)
            assert isinstance(text, str)
            assert number == Decimal(text)
            assert not set(text) - set("-.0123456789")

    @given(decimals())
    def test_keeps_fraction_digits(self, number: Decimal) -> None:
        """Without a declared scale, the fraction digits are unchanged."""
        text = str(converter("decimal")(number))
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        assert max(-exponent, 0) == len(text.partition(".")[2])

    @given(st.integers(1, 60), st.integers(-20, 60), st.data())
    def test_declared_scale(self, precision: int, scale: int, data: st.DataObject) -> None:
        """Every number of a decimal(p,s), in any spelling, is written with exactly s fraction digits, unrounded."""
        unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
        number = Decimal(f"{unscaled}E{-scale}")
        for spelled in (number, *_spellings(number)):
            text = str(converter(f"decimal({precision},{scale})")(spelled))
            assert number == Decimal(text)
            assert max(scale, 0) == len(text.partition(".")[2])

    @given(st.integers(1, 60), st.integers(-20, 60), decimals())
    def test_nothing_is_rounded(self, precision: int, scale: int, number: Decimal) -> None:
        """A decimal(p,s) holds unscaled numbers of p digits. Any other number is an issue."""
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        whole = int("".join(map(str, digits))) * 10 ** max(exponent + scale, 0)
        unscaled, rest = divmod(whole, 10 ** max(-exponent - scale, 0))
        expected: object = number
        if rest:
            expected = SCALE
        elif unscaled >= 10**precision:
            expected = PRECISION
        found = outcome(converter(f"decimal({precision},{scale})"), number)
        assert expected == (Decimal(found) if isinstance(found, str) else found)


def _single(number: float) -> bytes:
    return struct.pack("<f", number)


class TestFloats:
    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_float64_round_trip(self, number: float) -> None:
        """A float64 is unchanged as a number and as text, including the sign of zero."""
        for spelled in (number, repr(number), Decimal(repr(number))):
            assert struct.pack("<d", number) == struct.pack("<d", converter("float64")(spelled))

    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_float32_round_trip(self, number: float) -> None:
        """The translated float32 is the same single-precision number."""
        found = converter("float32")(number)
        assert isinstance(found, float)
        assert _single(number) == _single(found)

    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_float32_shortest(self, number: float) -> None:
        """Rounded to one digit fewer, it would be another number."""
        assume(number)
        found = converter("float32")(number)
        digits = len(Decimal(repr(found)).normalize().as_tuple().digits)
        assert 1 == digits or _single(number) != _single(float(f"{number:.{digits - 1}g}"))

    @given(st.decimals(-999999, 999999, places=0), st.integers(-36, 30))
    def test_float32_gives_back_six_digits(self, coefficient: Decimal, exponent: int) -> None:
        """Six decimal digits survive single precision, so a writer that sends the double of 1.1 gives 1.1."""
        number = float(f"{coefficient}E{exponent}")
        assume(number == 0 or abs(number) >= 2.0**-126)
        (as_sent,) = struct.unpack("<f", _single(number))
        assert number == converter("float32")(as_sent)
