"""Convert scalars of the source to canonical scalars, based on nothing but the declared column type.

Row images contain canonical scalars (docs/design.md §4.2). The encoding depends on the column type and never on the
value. If a value has no faithful encoding, this raises `Unrepresentable`. The column is then left out of the image and
reported as an issue. Values are never rounded or guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from translator.values import fast_converters
from translator.values.counted import clock_of, date_of_days, local_of, unscaled_decimal
from translator.values.fast_converters import timestamptz_in
from translator.values.numbers import INTEGER_BOUNDS, MAX_EXPONENT, MAX_ZEROS
from translator.values.scalar import Assumed, Converter, Unrepresentable, text_of
from translator.values.text import (
    bytes_from_base64,
    bytes_from_hex,
    bytes_from_latin1,
    to_boolean,
    to_bytes,
    to_string,
    to_unknown,
)
from translator.values.times import clock_text, date_text, utc_text, zone

_CONVERTERS: Mapping[str, Converter] = {
    "boolean": to_boolean,
    **{name: fast_converters.bounded_integer(*bounds) for name, bounds in INTEGER_BOUNDS.items()},
    "uint64": fast_converters.uint64,
    "decimal": fast_converters.decimal,
    "float32": fast_converters.float32,
    "float64": fast_converters.float64,
    "string": to_string,
    "bytes": to_bytes,
    "date": fast_converters.date,
    "time": fast_converters.time,
    "timestamp": fast_converters.timestamp,
    "timestamptz": timestamptz_in(None),
    "interval": text_of,
    "json": text_of,
    "uuid": text_of,
    "enum": to_string,
    "set": to_string,
    "geometry": to_bytes,
    "unknown": to_unknown,
}

CANONICAL_TYPES = tuple(_CONVERTERS)
_DECIMAL_TYPE = re.compile(r"decimal\((\d{1,4}),(-?\d{1,4})\)\Z")


@lru_cache(maxsize=4096)
def converter(canonical_type: str) -> Converter:
    """Return the converter to a canonical type, for values in their usual format.

    If a dialect's writers use another format for a type (hex, latin-1, a default time zone), it uses the named function
    instead.

    Raises:
        ValueError: unknown type.
    """
    found = _CONVERTERS.get(canonical_type)
    if found is not None:
        return found
    match = _DECIMAL_TYPE.match(canonical_type)
    if match is None:
        raise ValueError(
            f"unknown type {canonical_type!r}; expected {', '.join(CANONICAL_TYPES)}, or decimal(p,s) without spaces"
        )
    precision, scale = int(match[1]), int(match[2])
    if precision > MAX_EXPONENT or abs(scale) > MAX_ZEROS:
        raise ValueError(
            f"{canonical_type}: the precision must not exceed {MAX_EXPONENT}, and the scale must not exceed {MAX_ZEROS}"
        )
    return fast_converters.scaled_decimal(precision, scale)


__all__ = [
    "CANONICAL_TYPES",
    "Assumed",
    "Converter",
    "Unrepresentable",
    "bytes_from_base64",
    "bytes_from_hex",
    "bytes_from_latin1",
    "clock_of",
    "clock_text",
    "converter",
    "date_of_days",
    "date_text",
    "local_of",
    "timestamptz_in",
    "unscaled_decimal",
    "utc_text",
    "zone",
]
