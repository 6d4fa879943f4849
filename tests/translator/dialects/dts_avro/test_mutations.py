"""Any value in the topic becomes an event, a skip, or a dead letter without row data, but never a crash.

`MUTATIONS=100000 python -m pytest tests/translator/dialects/dts_avro/test_mutations.py` runs more of the seeded ones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sizes import examples
from tests.translator.dialects.dts_avro.composer import (
    NONE,
    Cell,
    binary,
    binary_geometry,
    cases,
    character,
    compose,
    date_time,
    decimal,
    fields,
    float_,
    integer,
    local,
    text,
    text_geometry,
    timestamp,
    zoned,
)
from tests.translator.dialects.made import made
from translator.codecs.avro import AvroCodec
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.decode import OPERATIONS
from translator.errors import ErrorCode, MessageError
from translator.message import Limits, Message, Setup
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Translator

DIALECT = made(DtsAvro, Setup("src"), {})
CASES = list(cases().values())


def _flipped(value: bytes) -> Iterator[bytes]:
    for at in range(len(value)):
        for bit in (1, 0x40, 0x80):
            yield value[:at] + bytes([value[at] ^ bit]) + value[at + 1 :]


@pytest.mark.requirement("dts_avro.tests.1")
def test_a_truncated_message_is_an_outcome_or_a_message_error() -> None:
    """This covers every case, truncated at every byte."""
    for value in CASES:
        for end in range(len(value)):
            _decode(value[:end])


def test_a_flipped_bit_is_an_outcome_or_a_message_error() -> None:
    """This covers three bits of every byte of every case, flipped one at a time."""
    for value in CASES:
        for damaged in _flipped(value):
            _decode(damaged)


@examples(2)
@given(st.binary(max_size=300))
@example(b"")
@example(bytes(64))
def test_any_bytes_are_an_outcome_or_a_message_error(value: bytes) -> None:
    """This covers arbitrary bytes."""
    _decode(value)


def _decode(value: bytes) -> None:
    with suppress(MessageError):
        DIALECT.decode(Message("raw", 0, 0, 0, None, value))


# -- seeded mutations

SECRET = "Zq7#4111"
"""Put in every value that can hold a text, so that a dead letter that quotes one is found."""

_NUMBERS = fields(id=8, a=253, b=246, c=12, d=7, e=11, f=252, g=255, h=245, i=5, j=1184, k=10, l=247, m=16, n=255)
_VALUES: list[Cell] = [
    integer(41_111_111, 8),
    character(SECRET),
    decimal("4111.1111"),
    local(2023, 10, 17, 15, 2, 0, 411_111),
    timestamp(1_697_526_120, 411_111),
    date_time(hour=-12, minute=-30, second=0, millis=-500_000),
    binary(SECRET.encode()),
    binary_geometry(b"\1\1\0\0\0" + SECRET.encode() * 2),
    text(f'{{"a": "{SECRET}"}}', "JSON"),
    float_(4111.1111),
    zoned("+08:00", year=2023, month=10, day=17, hour=15, minute=2, second=0, millis=411),
    date_time(year=2023, month=10, day=17),
    text(SECRET, "ENUM"),
    None,
    text_geometry(SECRET),
]
_OTHERS: list[Cell] = [_VALUES[0], character(SECRET * 9, "gbk"), NONE, *_VALUES[3:-2], integer(1), None]
_KEY = {"pk_uk_info": '{"PRIMARY":["id"]}', "readerThroughoutTime": "1697526120531", "server_id": "1"}
_SOURCES = [("MySQL", "8.0"), ("PostgreSQL", "14"), ("Oracle", "19"), ("SQLServer", "2019"), ("MongoDB", "6.0")]


def _rows() -> Iterator[bytes]:
    for source in _SOURCES:
        common: dict[str, Any] = {"fields": _NUMBERS, "tags": _KEY, "source": source}
        yield compose("UPDATE", beforeImages=_VALUES, afterImages=_OTHERS, **common)
        yield compose("INSERT", schema="v2", afterImages=_VALUES, **common)
        yield compose("DELETE", beforeImages=_OTHERS, **common)
    yield compose("INSERT", source=("MongoDB", "6.0"), afterImages=[text(SECRET), integer(7)])


SAMPLES = [
    *_rows(),
    *(compose(operation, afterImages=f"TRUNCATE TABLE `{SECRET}`, b", tags=_KEY) for operation in sorted(OPERATIONS)),
    *CASES,
]
_BYTES = [b"\0", b"\1", b"\2", b"\x18", b"\x1a", b"\x7f", b"\x80", b"\x80\0", b"\xff", b"\xff" * 9 + b"\1", b"\xc3\xa9"]


def mutated(seed: int) -> bytes:
    """Return a sample with one to four seeded changes: bytes overwritten, removed, inserted, duplicated or cut off."""
    chance = random.Random(seed)
    value = bytearray(chance.choice(SAMPLES))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(value) + 1)
        end = min(len(value), at + chance.choice([0, 1, 1, 1, 2, 8, 40]))
        match chance.randrange(5):
            case 0:
                value[at:end] = chance.choice(_BYTES)
            case 1:
                value[at:end] = chance.randbytes(end - at)
            case 2:
                value[at:at] = value[at:end]
            case 3:
                other = chance.choice(SAMPLES)
                value[at:end] = other[at : at + chance.randint(0, 40)]
            case _:
                del value[at : chance.choice([end, len(value)])]
    return bytes(value)


_COUNT = int(os.environ.get("MUTATIONS", "4000"))
_SHARES = 8
_FOREIGN = ("Error", "Exception", "fastavro", "msgspec", "sqlglot", "codec can't", "Traceback")


@pytest.mark.requirement("dts_avro.reject.1")
@pytest.mark.parametrize("share", range(_SHARES))
def test_seeded_mutations(share: int) -> None:
    """The result is an event, a skip or a dead letter, never INTERNAL. No reason quotes a value or library error."""
    translators = [
        Translator("src", made(DtsAvro, Setup("src"), options), Limits(columns=200))
        for options in ({}, {"transactions": True, "extras": True, "unique_key_as_key": True, "fraction_unit": "nanos"})
    ]
    seen: set[str] = set()
    for seed in range(share, _COUNT, _SHARES):
        message = Message("raw", 0, 0, 0, None, mutated(seed))
        for translator in translators:
            result = translator.translate(message)
            if isinstance(result, Events):
                encoded = translator.encode(AvroCodec(), message, result)
                result = encoded if isinstance(encoded, DeadLetter) else result
            seen.add(type(result).__name__)
            if isinstance(result, DeadLetter):
                assert result.code != ErrorCode.INTERNAL, (seed, result.reason)
                quoted = [word for word in (SECRET, "4111", *_FOREIGN) if word in result.reason]
                assert [] == quoted, (seed, result.reason)
    assert {"Events", "Skip", "DeadLetter"} == seen


def test_a_seed_is_a_message() -> None:
    """The same seed gives the same bytes, so that a failure can be reproduced."""
    assert mutated(7) == mutated(7) != mutated(8)
