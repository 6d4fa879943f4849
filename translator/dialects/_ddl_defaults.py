"""Determine the value that existing rows get from the default of an added column, provided that the statement leaves no
doubt.

A value is uncertain if the source would round it, pad it, truncate it, or interpret it according to its settings. It is
then not filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from translator.dialects._ddl_effects import Literal, SqlType


class TypeParts(NamedTuple):
    """A parsed type: `labels` for an enum or set, `numbers` for other types."""

    name: str
    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    unsigned: bool


def type_parts(type_: SqlType) -> TypeParts:
    """Parse a type that is written in the usual form."""
    name, _, rest = type_.text.partition("(")
    inside, _, behind = rest.rpartition(")")
    words = [*name.split(), *behind.split()]
    named = " ".join(word for word in words if word not in _ATTRIBUTES)
    numbers = tuple(int(text) for text in inside.split(",") if text.isdecimal() and len(text) < 6)
    labels = tuple(label.replace("''", "'") for label in _LABEL.findall(inside))
    return TypeParts(named, numbers, labels, not {"unsigned", "zerofill"}.isdisjoint(words))


_ATTRIBUTES = frozenset({"unsigned", "zerofill", "byte"})
_LABEL = re.compile(r"'((?:[^']|'')*+)'")


def mysql_value(type_: SqlType, literal: Literal) -> str | None:
    """Return the value's text as MySQL stores and shows it. A literal of kind `implicit` is the implicit default of a
    NOT NULL column.
    """
    rule = _MYSQL.get(type_parts(type_).name)
    if rule is None or type_.charset == "binary":
        return None
    if literal.kind == "boolean":
        literal = Literal("number", literal.text)
    return rule(type_parts(type_), literal)


def _integer(parts: TypeParts, literal: Literal) -> str | None:
    return "0" if literal.kind == "implicit" else literal.text


def _decimal(parts: TypeParts, literal: Literal) -> str | None:
    """Without parameters, the type is DECIMAL(10,0)."""
    text = _integer(parts, literal)
    scale = (*parts.numbers, 0, 0)[1]
    return text if text is not None and len(text.partition(".")[2]) <= scale and "e" not in text.lower() else None


def _float(parts: TypeParts, literal: Literal) -> str | None:
    return _integer(parts, literal) if len(parts.numbers) < 2 else None


def _text(parts: TypeParts, literal: Literal) -> str | None:
    if literal.kind == "number" and not _WHOLE.fullmatch(literal.text):
        return None
    longest = parts.numbers[0] if parts.numbers else None
    return literal.text if longest is None or len(literal.text) <= longest else None


def _char(parts: TypeParts, literal: Literal) -> str | None:
    return None if literal.text.endswith(" ") else _text(parts, literal)


def _enum(parts: TypeParts, literal: Literal) -> str | None:
    if literal.kind == "implicit":
        return parts.labels[0] if parts.labels else None
    return literal.text if literal.kind == "string" and literal.text in parts.labels else None


def _set(parts: TypeParts, literal: Literal) -> str | None:
    """Labels are returned in the order in which the type lists them, whatever their order in the default."""
    if literal.kind == "number":
        return None
    chosen = literal.text.split(",") if literal.text else []
    ordered = [label for label in parts.labels if label in chosen]
    return literal.text if ordered == chosen else None


def _date(parts: TypeParts, literal: Literal) -> str | None:
    return literal.text if literal.kind == "string" and _DATE.fullmatch(literal.text) else None


def _datetime(parts: TypeParts, literal: Literal) -> str | None:
    if literal.kind != "string":
        return None
    text = f"{literal.text} 00:00:00" if _DATE.fullmatch(literal.text) else literal.text
    return text if _DATETIME.fullmatch(text) and _fits_fraction(parts, text) else None


def _time(parts: TypeParts, literal: Literal) -> str | None:
    if literal.kind == "implicit":
        return "00:00:00"
    fits = literal.kind == "string" and _TIME.fullmatch(literal.text) and _fits_fraction(parts, literal.text)
    return literal.text if fits else None


def _year(parts: TypeParts, literal: Literal) -> str | None:
    return "0" if literal.kind == "implicit" else literal.text if _YEAR.fullmatch(literal.text) else None


def _fits_fraction(parts: TypeParts, text: str) -> bool:
    return len(text.partition(".")[2]) <= (*parts.numbers, 0)[0]


_WHOLE = re.compile(r"-?[1-9]\d*+|0", re.ASCII)
_DATE = re.compile(r"[1-9]\d{3}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(r"[1-9]\d{3}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?", re.ASCII)
_TIME = re.compile(r"-?\d{2,3}:\d\d:\d\d(?:\.\d+)?", re.ASCII)
_YEAR = re.compile(r"[12]\d{3}", re.ASCII)

_Rule: TypeAlias = Callable[[TypeParts, Literal], str | None]


def _each(names: str, rule: _Rule) -> dict[str, _Rule]:
    return dict.fromkeys(names.split(), rule)


_MYSQL: Mapping[str, _Rule] = {
    **_each("tinyint int1 bool boolean smallint int2 mediumint middleint int3 int integer int4 bigint int8", _integer),
    **_each("decimal dec numeric fixed", _decimal),
    **_each("float double real", _float),
    "double precision": _float,
    **_each("varchar tinytext text mediumtext longtext", _text),
    "character varying": _text,
    **_each("char character", _char),
    "enum": _enum,
    "set": _set,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "year": _year,
}
"""Types whose constants are certain. For example, a TIMESTAMP depends on the session's time zone, and bytes depend on
how they are sent.
"""

MYSQL_CANONICAL: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "int1", "bool", "boolean", "year"), "int16"),
    **dict.fromkeys(("smallint", "int2", "mediumint", "middleint", "int3"), "int32"),
    **dict.fromkeys(("int", "integer", "int4", "bigint", "int8"), "int64"),
    **dict.fromkeys(("double", "real", "double precision"), "float64"),
    "float": "float32",
    **dict.fromkeys(("varchar", "tinytext", "text", "mediumtext", "longtext", "character varying"), "string"),
    **dict.fromkeys(("char", "character"), "string"),
    **{name: name for name in ("enum", "set", "date", "time")},
    "datetime": "timestamp",
}
"""The canonical types that DTS assigns to MySQL columns (`dts_avro.types`). Decimals have their scale."""

_NUMBERS = ("number", "numeric", "decimal", "dec")
_CANONICAL: Mapping[str, Mapping[str, str]] = {
    "oracle": {
        **dict.fromkeys(("varchar2", "nvarchar2", "varchar", "clob", "nclob"), "string"),
        **dict.fromkeys(("integer", "int", "smallint", *_NUMBERS), "decimal"),
        "binary_float": "float32",
        "binary_double": "float64",
    },
    "postgres": {
        **dict.fromkeys(("smallint", "int2"), "int16"),
        **dict.fromkeys(("int", "integer", "int4"), "int32"),
        **dict.fromkeys(("bigint", "int8"), "int64"),
        **dict.fromkeys(("varchar", "text", "character varying"), "string"),
        **dict.fromkeys(("boolean", "bool"), "boolean"),
        **dict.fromkeys(("numeric", "decimal"), "decimal"),
        **dict.fromkeys(("real", "float4"), "float32"),
        **dict.fromkeys(("double precision", "float8"), "float64"),
        "date": "date",
        "uuid": "uuid",
    },
    "tsql": {
        **dict.fromkeys(("varchar", "nvarchar"), "string"),
        "bit": "boolean",
        "tinyint": "uint8",
        "smallint": "int16",
        "int": "int32",
        "bigint": "int64",
        **dict.fromkeys(("numeric", "decimal"), "decimal"),
        "date": "date",
    },
}


def plain_value(type_: SqlType, literal: Literal, grammar: str) -> tuple[str, str] | None:
    """Return the value's canonical type and text, for a source other than MySQL."""
    parts = type_parts(type_)
    canonical = _CANONICAL.get(grammar, {}).get(parts.name)
    if canonical is None or literal.kind == "implicit":
        return None
    if canonical == "decimal":
        scaled = len(parts.numbers) > 1 or parts.name not in _NUMBERS or (bool(parts.numbers) and grammar != "postgres")
        text = _decimal(parts, literal) if scaled or parts.numbers else literal.text
        return None if text is None else (_decimal_type(parts.numbers), text)
    if canonical == "string":
        text = None if literal.kind == "boolean" else _text(parts, literal)
    elif canonical == "date":
        text = _date(parts, literal)
    elif canonical == "boolean":
        text = _BOOLEANS.get(literal.text.lower())
    else:
        text = literal.text
    return None if text is None else (canonical, text)


_BOOLEANS: Mapping[str, str] = {"true": "1", "false": "0", "1": "1", "0": "0", "t": "1", "f": "0"}


def mysql_canonical(type_: SqlType) -> str | None:
    """Return a MySQL column's canonical type in DTS records."""
    parts = type_parts(type_)
    if parts.name in ("decimal", "dec", "numeric", "fixed"):
        return _decimal_type(parts.numbers or (10,))
    return MYSQL_CANONICAL.get(parts.name)


def _decimal_type(numbers: Sequence[int]) -> str:
    return f"decimal({numbers[0]},{(*numbers, 0)[1]})" if numbers else "decimal"
