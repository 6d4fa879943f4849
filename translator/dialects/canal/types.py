"""Map each MySQL column type to its canonical type, and to the converter for the text that canal prints (§7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from translator.dialects.canal.mysql_type import OTHER_NAMES_OF_TEXT, MysqlType
from translator.dialects.canal.options import Options
from translator.dialects.canal.profile import PROFILES, Binary, Labels
from translator.dialects.canal.values import (
    bit1,
    bytes_from_numbers,
    enum_label,
    instant_of_seconds,
    json_text,
    padded_bytes,
    set_labels,
    time_of_day,
    wide_bit,
    within,
    without_labels,
    wkb,
)
from translator.values import Converter, bytes_from_base64, bytes_from_hex, bytes_from_latin1, converter, timestamptz_in
from translator.values.numbers import INTEGER_BOUNDS


class Spelling(Struct, frozen=True):
    """The formats in which a source's writer sends values. Its options and profile determine them."""

    timezone: str | None = None
    tinyint1_as_boolean: bool = False
    labels: Labels = "index"
    binary: Binary = "latin1"
    binary_note: str | None = None
    """The assumption if the writer does not document how it prints bytes, and the options do not declare it either
    (§6.3).
    """
    epoch_timestamps: bool = False


def spelling_of(options: Options) -> Spelling:
    """Return the formats that the options set or, failing that, those of the profile."""
    profile = PROFILES[options.profile]
    binary = options.binary or profile.binary
    assumed = options.binary is None and not profile.binary_documented
    return Spelling(
        options.timezone,
        options.tinyint1_as_boolean,
        options.labels or profile.labels,
        binary,
        f"BINARY_ASSUMED={binary}" if assumed else None,
        profile.epoch_timestamps,
    )


class Coding(Struct, frozen=True):
    """A column's canonical type, its converter, and the assumption to note on every row of the table."""

    type: str
    convert: Converter
    note: str | None = None


def plain(canonical: str) -> Coding:
    """Return the coding for a canonical type whose values have the usual format."""
    return Coding(canonical, converter(canonical))


UNKNOWN = plain("unknown")


def coding(type_: MysqlType | None, spelling: Spelling) -> Coding:
    """Return the coding for a column with that type, or UNKNOWN for an undocumented type."""
    rule = _RULES.get(type_.name) if type_ is not None else None
    return rule(type_, spelling) if rule is not None and type_ is not None else UNKNOWN


def declared_coding(canonical: str, spelling: Spelling) -> Coding:
    """Return the coding for a column whose canonical type the operator declares, and whose MySQL type was not sent."""
    rule = _DECLARED.get(canonical)
    return rule(canonical, spelling) if rule is not None else plain(canonical)


# -- numbers

_BITS = {8: "int8", 16: "int16", 24: "int32", 32: "int32", 64: "int64"}


def _integer(bits: int, type_: MysqlType, spelling: Spelling) -> Coding:
    if spelling.tinyint1_as_boolean and _is_tinyint1(type_):
        return plain("boolean")
    canonical = _BITS[bits]
    if type_.unsigned:
        canonical = "u" + canonical
    if bits != 24:
        return plain(canonical)
    low, high = (0, 2**24 - 1) if type_.unsigned else (-(2**23), 2**23 - 1)
    return Coding(canonical, partial(within, low, high, converter(canonical)))


def _is_tinyint1(type_: MysqlType) -> bool:
    """BOOL and BOOLEAN are synonyms for tinyint(1)."""
    return type_.name in ("bool", "boolean") or (
        type_.name == "tinyint" and type_.numbers == (1,) and not type_.unsigned
    )


def _serial(type_: MysqlType, spelling: Spelling) -> Coding:
    return plain("uint64")


def _decimal(type_: MysqlType, spelling: Spelling) -> Coding:
    """Return the coding of a DECIMAL. Without parameters, the scale is unknown and not 0, because some writers omit the
    parameters (§6.5).
    """
    if not type_.numbers:
        return plain("decimal")
    precision, scale = (*type_.numbers, 0)[:2]
    if len(type_.numbers) > 2 or not 1 <= precision <= 65 or scale > min(30, precision):
        return UNKNOWN
    return plain(f"decimal({precision},{scale})")


def _float(type_: MysqlType, spelling: Spelling) -> Coding:
    """FLOAT(p) with more than 24 bits of precision is another name for DOUBLE in MySQL."""
    return plain("float64" if len(type_.numbers) == 1 and type_.numbers[0] > 24 else "float32")


def _double(type_: MysqlType, spelling: Spelling) -> Coding:
    return plain("float64")


def _bit(type_: MysqlType, spelling: Spelling) -> Coding:
    """In MySQL, BIT without parameters is BIT(1), but a writer may omit parameters."""
    width = type_.numbers[0] if type_.numbers else 64
    if not 1 <= width <= 64:
        return UNKNOWN
    if width == 1:
        return Coding("boolean", bit1)
    for name in ("uint8", "uint16", "uint32"):
        high = INTEGER_BOUNDS[name][1]
        if 2**width - 1 <= high:
            return Coding(name, partial(within, 0, 2**width - 1, converter(name)))
    return Coding("uint64", partial(wide_bit, width))


def _year(type_: MysqlType, spelling: Spelling) -> Coding:
    return Coding("int16", partial(within, 0, 2155, converter("int16")))


# -- text and bytes


def _text(type_: MysqlType, spelling: Spelling) -> Coding:
    # Text with the character set `binary`, and CHAR BYTE, are bytes in MySQL. It is unknown whether canal prints such
    # columns as text or as bytes.
    return UNKNOWN if type_.charset == "binary" or "byte" in type_.attributes else plain("string")


def _bytes(type_: MysqlType, spelling: Spelling) -> Coding:
    if spelling.binary == "latin1" and type_.name == "binary" and type_.numbers:
        return Coding("bytes", partial(padded_bytes, type_.numbers[0]), spelling.binary_note)
    return _bytes_as(spelling)


def _bytes_as(spelling: Spelling) -> Coding:
    return Coding("bytes", _BINARY[spelling.binary], spelling.binary_note)


_BINARY: Mapping[Binary, Converter] = {
    "latin1": bytes_from_latin1,
    "hex": bytes_from_hex,
    "base64": bytes_from_base64,
    "numbers": bytes_from_numbers,
}


def _json(type_: MysqlType, spelling: Spelling) -> Coding:
    return Coding("json", json_text)


def _geometry(type_: MysqlType, spelling: Spelling) -> Coding:
    return _geometry_as(spelling)


def _geometry_as(spelling: Spelling) -> Coding:
    # No writer documents where the SRID is in bytes printed in other ways.
    return Coding("geometry", wkb, spelling.binary_note) if spelling.binary == "latin1" else UNKNOWN


# -- enum and set


def _labelled(read: Callable[[Sequence[str], str, object], str], type_: MysqlType, spelling: Spelling) -> Coding:
    if type_.labels is None:
        return UNKNOWN
    return Coding(type_.name, partial(read, type_.labels, spelling.labels))


def _no_labels(canonical: str, spelling: Spelling) -> Coding:
    """The messages contain numbers for labels that the declaration cannot represent."""
    return plain(canonical) if spelling.labels == "text" else Coding(canonical, without_labels)


# -- dates and times


def _time(type_: MysqlType, spelling: Spelling) -> Coding:
    return Coding("time", time_of_day)


def _timestamp(type_: MysqlType, spelling: Spelling) -> Coding:
    """A point in time, printed in the time zone of the writer's JVM. Without that zone, the result is only a local
    time.
    """
    if spelling.epoch_timestamps:
        return Coding("timestamptz", instant_of_seconds)
    if spelling.timezone is None:
        return Coding("timestamp", converter("timestamp"), "TZ_UNKNOWN")
    return _instant("timestamptz", spelling)


def _instant(canonical: str, spelling: Spelling) -> Coding:
    note = None if spelling.timezone is None else f"TZ_ASSUMED={spelling.timezone}"
    return Coding(canonical, timestamptz_in(spelling.timezone), note)


# -- the tables

Rule: TypeAlias = Callable[[MysqlType, Spelling], Coding]


def _as(canonical: str) -> Rule:
    return lambda type_, spelling: plain(canonical)


def _each(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_RULES: Mapping[str, Rule] = {
    **_each("tinyint int1 bool boolean", partial(_integer, 8)),
    **_each("smallint int2", partial(_integer, 16)),
    **_each("mediumint middleint int3", partial(_integer, 24)),
    **_each("int integer int4", partial(_integer, 32)),
    **_each("bigint int8", partial(_integer, 64)),
    "serial": _serial,
    **_each("decimal dec numeric fixed", _decimal),
    "float": _float,
    "float4": _float,
    **dict.fromkeys(("double", "double precision", "real", "float8"), _double),
    "bit": _bit,
    "year": _year,
    **_each("char nchar character varchar nvarchar tinytext text mediumtext longtext long", _text),
    **dict.fromkeys(OTHER_NAMES_OF_TEXT, _text),
    **_each("binary varbinary tinyblob blob mediumblob longblob", _bytes),
    "long varbinary": _bytes,
    "json": _json,
    "enum": partial(_labelled, enum_label),
    "set": partial(_labelled, set_labels),
    "date": _as("date"),
    "datetime": _as("timestamp"),
    "timestamp": _timestamp,
    "time": _time,
    **_each("geometry point linestring polygon multipoint multilinestring multipolygon", _geometry),
    **_each("geometrycollection geomcollection", _geometry),
}

_DECLARED: Mapping[str, Callable[[str, Spelling], Coding]] = {
    "bytes": lambda canonical, spelling: _bytes_as(spelling),
    "geometry": lambda canonical, spelling: _geometry_as(spelling),
    "json": lambda canonical, spelling: Coding(canonical, json_text),
    "timestamptz": _instant,
    "enum": _no_labels,
    "set": _no_labels,
}
