"""Convert the JSON values in images to Arrow columns, without losing precision. Values are never rounded. A value that
does not fit is an error.

Conversion is vectorized by column. If a whole column fails, the caller tries its values one by one to find the invalid
ones.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.schema.column_types import arrow_type

_IMAGE = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])

Values = Sequence[Any]


def image(text: str | bytes) -> dict[str, Any]:
    """Return the columns in a row image.

    Raises:
        ValueError: the text is not exactly one JSON object.
    """
    try:
        return _IMAGE.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ArithmeticError):
        # Not JSON, not UTF-8, nested too deeply, or an excessive exponent.
        raise ValueError("the value is not a JSON object") from None


def without_members(text: bytes, names: Collection[str]) -> bytes:
    """Return the row image without some of its columns. The text of the other columns does not change.

    Raises:
        ValueError: the text is not exactly one JSON object.
    """
    try:
        members = _MEMBERS.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise ValueError("the value is not a JSON object") from None
    return msgspec.json.encode({name: value for name, value in members.items() if name not in names})


def column(values: Values, sql: str) -> pa.Array:
    """Return the values as a column of the given type. None becomes null.

    Raises:
        ValueError: a value does not fit exactly. The message does not contain the value.
    """
    arrow = arrow_type(sql)
    convert = _BY_TYPE[sql.split("(")[0]]
    try:
        return convert(values, arrow)
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        # Arrow's own message quotes the value.
        raise ValueError(f"the value cannot be stored exactly as {sql}") from None


def image_value(value: Any) -> Any:
    """Return a column value in the format that images use. `column` converts it back to the same value."""
    if isinstance(value, float):
        text = repr(value)
        return _NAMES_OF_FLOATS.get(text, text)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo is not None else "")
    return value.isoformat() if isinstance(value, date) else value


def counting(count: int) -> pa.Int64Array:
    """Return the numbers from 0 on."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=-1)


def text_column(texts: pa.StringArray, sql: str) -> pa.Array:
    """Convert strings like `column`, but faster.

    Raises:
        ValueError: a string does not fit exactly.
    """
    convert = _BY_TYPE_OF_TEXT.get(sql.split("(")[0])
    if convert is not None:
        try:
            return convert(texts, arrow_type(sql))
        except pa.ArrowException:
            pass  # some spelling needs the slower conversion
    return column(texts.to_pylist(), sql)


def fits(value: Any, sql: str) -> bool:
    """Return whether one value fits the type."""
    try:
        column([value], sql)
    except ValueError:
        return False
    return True


def is_exactly(value: Any, sql: str) -> bool:
    """Return whether a numeric value fits the type. Its sign matters, because integer types have no negative zero."""
    return fits(value, sql) and not (isinstance(value, str | Decimal) and _NEGATIVE_ZERO.fullmatch(str(value)))


_NEGATIVE_ZERO = re.compile(r"-[0.]+([eE].*)?")


def _booleans(values: Values, arrow: pa.DataType) -> pa.Array:
    return pa.array(values, arrow)


def _integers(values: Values, arrow: pa.DataType) -> pa.Array:
    if Decimal not in set(map(type, values)):  # Arrow would drop the fraction
        try:
            return pa.array(values, arrow)
        except (pa.ArrowException, TypeError):
            pass  # a number without a declared type is sent as text
    return pa.array([_integer(value) for value in values], arrow)


# No integer column has more digits, and int() would take forever for a large exponent.
_LONGEST_INTEGER = 20


def _integer(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    number = _number(value)
    if number.adjusted() > _LONGEST_INTEGER or number != number.to_integral_value():
        raise ValueError("the number is not an integer, or is out of range for every integer type")
    return int(number)


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_NAMES_OF_FLOATS = {repr(value): name for name, value in _NOT_FINITE.items()}


def _floats(values: Values, arrow: pa.DataType) -> pa.Array:
    numbers = [None if value is None else _float(value) for value in values]
    array = pa.array(numbers, pa.float64()).cast(arrow, safe=False)
    infinite = sum(1 for number in numbers if number is not None and math.isinf(number))
    if infinite != pc.sum(pc.is_inf(array), min_count=0).as_py():
        raise ValueError("the number is out of range for a float")
    return array


def _float(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    nearest = float(_number(value))
    if math.isinf(nearest):
        raise ValueError("the number is out of range for a double")
    return nearest


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


# Up to this number of values, compiling a regular expression for all of them costs more than reading each of them.
_FEW = 32


def _decimals(values: Values, arrow: pa.Decimal128Type) -> pa.Array:
    if len(values) > _FEW:
        with suppress(pa.ArrowException, TypeError):  # exponents, and JSON numbers
            return _decimals_of_texts(pa.array(values, pa.string()), arrow)
    return pa.array([None if value is None else _number(value) for value in values], arrow)


def _decimals_of_texts(texts: pa.StringArray, arrow: pa.Decimal128Type) -> pa.Array:
    """Convert digits to decimals.

    Raises:
        pa.ArrowInvalid: some strings are not plain digits, or have too many digits.
    """
    whole, scale = arrow.precision - arrow.scale, arrow.scale
    # Arrow's cast does not detect every overflow, so it only receives texts whose digits certainly fit.
    fits = pc.match_substring_regex(texts, rf"^-?0*[0-9]{{0,{whole}}}(\.[0-9]{{0,{scale}}})?$")
    if not pc.all(fits, min_count=0).as_py():
        raise pa.ArrowInvalid("the number does not consist of plain digits")
    return texts.cast(arrow)


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError("not a number")
    # Decimal() alone would also accept underscores, spaces, NaN and digits from other scripts.
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError("not a number")
    return Decimal(value)


def _strings(values: Values, arrow: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, arrow)
    except (pa.ArrowException, TypeError):
        return pa.array([_string(value) for value in values], arrow)


def _string(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    raise TypeError("expected text but got a list or an object")


def _binaries(values: Values, arrow: pa.DataType) -> pa.Array:
    decoded = [None if value is None else binascii.a2b_base64(value, strict_mode=True) for value in values]
    return pa.array(decoded, arrow)


# The range of Python's date, because moved rows pass through Python.
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)


def _dates(values: Values, arrow: pa.DataType) -> pa.Array:
    return _in_calendar(pa.array(values, pa.string()).cast(arrow))


# Zeros after the microsecond.
_IDLE_DIGITS = re.compile(r"(\.\d{6})0+(?=Z?$)")


def _timestamps(values: Values, arrow: pa.DataType) -> pa.Array:
    try:
        return _in_calendar(pa.array(values, pa.string()).cast(arrow))
    except pa.ArrowException:
        shortened = [None if value is None else _IDLE_DIGITS.sub(r"\1", value) for value in values]
        return _in_calendar(pa.array(shortened, pa.string()).cast(arrow))


def _in_calendar(array: pa.Array) -> pa.Array:
    first, last = (
        pa.scalar(_FIRST, pa.timestamp("us")).cast(array.type),
        pa.scalar(_LAST, pa.timestamp("us")).cast(array.type, safe=False),
    )
    if not pc.all(pc.and_(pc.greater_equal(array, first), pc.less_equal(array, last)), min_count=0).as_py():
        raise ValueError("the year is not between 1 and 9999")
    return array


_BY_TYPE: dict[str, Callable[[Values, pa.DataType], pa.Array]] = {
    "boolean": _booleans,
    "tinyint": _integers,
    "smallint": _integers,
    "int": _integers,
    "bigint": _integers,
    "decimal": _decimals,
    "float": _floats,
    "double": _floats,
    "string": _strings,
    "binary": _binaries,
    "date": _dates,
    "timestamp": _timestamps,
    "timestamp_ntz": _timestamps,
}

# Types whose texts are converted in bulk.
_BY_TYPE_OF_TEXT: dict[str, Callable[[pa.StringArray, pa.DataType], pa.Array]] = {
    "decimal": _decimals_of_texts,
    "string": lambda texts, arrow: texts,
    "date": lambda texts, arrow: _in_calendar(texts.cast(arrow)),
    "timestamp": lambda texts, arrow: _in_calendar(texts.cast(arrow)),
    "timestamp_ntz": lambda texts, arrow: _in_calendar(texts.cast(arrow)),
}
