"""The result of a converter, as comparable values: the canonical scalar, or what it raises instead."""

from dataclasses import dataclass

from translator.message import Scalar
from translator.values import Assumed, Converter, Unrepresentable


@dataclass(frozen=True)
class Issue:
    """The value has no faithful form, for this reason."""

    code: str


@dataclass(frozen=True)
class Noted:
    """The value was read with an assumption."""

    value: Scalar
    note: str


def outcome(convert: Converter, value: object) -> object:
    """Return the canonical value, the issue that replaces it, or the assumption with it."""
    try:
        return convert(value)
    except Unrepresentable as bad:
        return Issue(bad.code)
    except Assumed as assumed:
        return Noted(assumed.value, assumed.note)


def check(convert: Converter, value: object, expected: object) -> None:
    """Check value and type, because 1, 1.0 and True are different in JSON."""
    found = outcome(convert, value)
    assert (type(expected), str(expected)) == (type(found), str(found))


NOT_A_NUMBER, NOT_AN_INTEGER = Issue("NOT_A_NUMBER"), Issue("NOT_AN_INTEGER")
OUT_OF_RANGE, TOO_FAR = Issue("OUT_OF_RANGE"), Issue("EXPONENT_OUT_OF_RANGE")
NOT_TEXT, NOT_ASCII = Issue("NOT_TEXT"), Issue("NOT_ASCII")
SCALE, PRECISION = Issue("SCALE_EXCEEDED"), Issue("PRECISION_EXCEEDED")
