"""Derive the unit of `es` and `ts` from their size, because writers use different units and messages do not state them.

Canal writes milliseconds. Tencent's CKafka connector writes seconds, and others could write microseconds. Each bound is
before 1974 in the smaller unit, and in 2286 or later in the larger one. The size of a real time therefore reveals its
unit.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["seconds", "milliseconds", "microseconds"]

SECONDS: Unit = "seconds"
MILLISECONDS: Unit = "milliseconds"
MICROSECONDS: Unit = "microseconds"

FIRST_MILLISECOND = 10**10
"""26 April 1970; as seconds, the year 2286. DTS uses the same bound (dts_avro)."""
FIRST_MICROSECOND = 10**14
"""9 March 1973; as milliseconds, the year 5138."""
END = 10**17
"""As microseconds, the year 5138. Greater numbers are not times."""

TIME_UNIT_ASSUMED = "TIME_UNIT_ASSUMED"
"""Note `TIME_UNIT_ASSUMED=es:seconds`: that field is not in milliseconds."""

_MICROS = {SECONDS: 1_000_000, MILLISECONDS: 1_000, MICROSECONDS: 1}


def unit_of(time: int) -> Unit:
    """Return the unit of a time given as a number greater than 0."""
    if time < FIRST_MILLISECOND:
        return SECONDS
    return MILLISECONDS if time < FIRST_MICROSECOND else MICROSECONDS


def time_us(time: int | None) -> int | None:
    """Return microseconds since 1970. 0 means no time."""
    return time * _MICROS[unit_of(time)] if time else None


def notes_on(times: dict[str, int | None]) -> tuple[str, ...]:
    """Return the notes on fields whose unit differs from canal's."""
    units = {name: unit_of(time) for name, time in times.items() if time}
    return tuple(f"{TIME_UNIT_ASSUMED}={name}:{unit}" for name, unit in units.items() if unit != MILLISECONDS)
