"""The contract of every dialect with a fast path: for any message, both paths give the same result."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.translator.dialects.case import find_cases, opened
from translator.dialects import DIALECTS
from translator.errors import MessageError
from translator.message import HasFastPath, Message, Outcome

CASES = [case for case in find_cases() if isinstance(opened(case)[0], HasFastPath)]
MUTANTS = 60


def mutants(value: bytes, seed: str) -> Iterator[bytes]:
    """Return the message and damaged forms: truncated, with changed bytes, repeated or missing parts, or whitespace."""
    yield value
    chance = random.Random(seed)
    for _ in range(MUTANTS if value else 0):
        begin, end = sorted(chance.randrange(len(value) + 1) for _ in range(2))
        byte = bytes([chance.choice(b' "\\{}[],:0n\xc3\xff')])
        yield chance.choice(
            (
                value[:begin],
                value[:begin] + byte + value[begin + 1 :],
                value[:begin] + byte + value[begin:],
                value[:end] + value[begin:],
                value[:begin] + value[end:],
                value.replace(b":", b" : ", 1 + begin % 7),
            )
        )


def result(decode: Callable[[Message], Outcome], message: Message) -> object:
    """Return the outcome, or the text of the refusal."""
    try:
        return repr(decode(message))
    except MessageError as error:
        return error.code, str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_both_ways_agree(case: Path) -> None:
    """Both paths agree on a golden case with its options, and on damaged forms of it."""
    dialect, message = opened(case)
    assert isinstance(dialect, HasFastPath)
    for value in mutants(message.value or b"", case.name):
        given = replace(message, value=value)
        assert result(dialect.decode, given) == result(dialect.decode_plainly, given), value


def test_the_dialects_with_a_fast_path() -> None:
    """Qlik has none. DTS Avro has one per cell, which `dts_avro/test_fast_path.py` compares with the plain one."""
    assert {"canal", "shareplex"} == {case.parent.name for case in CASES}
    assert {"canal", "shareplex", "dts_avro", "qlik"} == set(DIALECTS)
