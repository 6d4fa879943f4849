"""The unit of `es` and `ts`, by their size: writers disagree, and no message names it.

Canal writes milliseconds. Tencent's CKafka connector writes seconds, and others may write microseconds. The bounds lie
in the year 1970 for the larger unit and after the year 2286 for the smaller one, so no real time is between them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["seconds", "milliseconds", "microseconds"]

SECONDS: Unit = "seconds"
MILLISECONDS: Unit = "milliseconds"
MICROSECONDS: Unit = "microseconds"

FIRST_MILLISECOND = 10**10
"""26 April 1970; as seconds, the year 2286. DTS tells them apart in the same way (dts_avro)."""
FIRST_MICROSECOND = 10**14
"""9 March 1973; as milliseconds, the year 5138."""
END = 10**17
"""As microseconds, the year 5138: no time from here on."""

TIME_UNIT_ASSUMED = "TIME_UNIT_ASSUMED"
"""Note `TIME_UNIT_ASSUMED=es:seconds`: that member is not in milliseconds."""

_MICROS = {SECONDS: 1_000_000, MILLISECONDS: 1_000, MICROSECONDS: 1}


def unit_of(time: int) -> Unit:
    """Return the unit of a time that is sent as a number greater than 0."""
    if time < FIRST_MILLISECOND:
        return SECONDS
    return MILLISECONDS if time < FIRST_MICROSECOND else MICROSECONDS


def time_us(time: int | None) -> int | None:
    """Return microseconds since 1970; 0 is no time."""
    return time * _MICROS[unit_of(time)] if time else None


def notes_on(times: dict[str, int | None]) -> tuple[str, ...]:
    """Return the notes on members whose unit is not the one that canal writes."""
    units = {name: unit_of(time) for name, time in times.items() if time}
    return tuple(f"{TIME_UNIT_ASSUMED}={name}:{unit}" for name, unit in units.items() if unit != MILLISECONDS)
