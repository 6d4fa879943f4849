"""A record's fields before its columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from translator.dialects._avro_primitives import (
    Damage,
    check_block,
    read_count,
    read_index,
    read_int,
    read_long,
    read_text,
)
from translator.dialects.dts_avro.schema import OPERATIONS, SOURCE_TYPES

Head: TypeAlias = tuple[bytes, bytes, bytes, str, bytes, str, str, bytes, str, str | None, list[int] | None]
"""The fields before the tags, as in Record. Rarely used fields remain bytes."""


def _word(words: Sequence[str], data: bytes, at: int) -> tuple[str, int]:
    ordinal, at = read_index(data, at, len(words))
    return words[ordinal], at


def _object_name(data: bytes, at: int) -> tuple[str | None, int]:
    index, at = read_index(data, at, 2)
    return read_text(data, at) if index else (None, at)


def read_head(data: bytes, max_items: int) -> tuple[Head, int]:
    """Return the fields before the tags, and their end."""
    version_end = read_int(data, 0)[1]
    number_end = read_long(data, version_end)[1]
    timestamp_end = read_long(data, number_end)[1]
    position, position_end = read_text(data, timestamp_end)
    _, safe_end = read_text(data, position_end)
    txid, at = read_text(data, safe_end)
    source, source_end = _word(SOURCE_TYPES, data, at)
    _, at = read_text(data, source_end)
    operation, end = _word(OPERATIONS, data, at)
    name, name_end = _object_name(data, end)
    times, times_end = _process_timestamps(data, name_end, max_items)
    head = (
        data[:version_end],
        data[version_end:number_end],
        data[number_end:timestamp_end],
        position,
        data[position_end:safe_end],
        txid,
        source,
        data[source_end:at],
        operation,
        name,
        times,
    )
    return head, times_end


def _process_timestamps(data: bytes, at: int, max_items: int) -> tuple[list[int] | None, int]:
    index, at = read_index(data, at, 2)
    if index == 0:
        return None, at
    times: list[int] = []
    while True:
        count, at, end = read_count(data, at, max_items)
        if not count:
            return times, at
        for _ in range(count):
            time, at = read_long(data, at)
            times.append(time)
        check_block(len(times), at, end, max_items)


def read_tags(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """Read the map of tags. A repeated tag counts as damage."""
    tags: dict[str, str] = {}
    entries = 0
    while True:
        count, at, end = read_count(data, at, len(data))
        if not count:
            return tags, at
        entries += count
        for _ in range(count):
            name, at = read_text(data, at)
            tags[name], at = read_text(data, at)
        if len(tags) != entries:
            raise Damage("a map key occurs twice")
        check_block(entries, at, end, len(data))


# -- values that many records share


@lru_cache(maxsize=4096)
def kept_long(data: bytes) -> tuple[int, int]:
    """Read like `read_long`, with a cache, because each second has many records."""
    return read_long(data, 0)
