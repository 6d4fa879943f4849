"""Whatever lies in the topic: an outcome or a MessageError, never another exception."""

from collections.abc import Iterator
from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.translator.dialects.dts_avro_composer import cases
from translator.dialects.dts_avro import DtsAvro
from translator.errors import MessageError
from translator.message import Message, Setup

DIALECT = DtsAvro(Setup("src"), {})
CASES = list(cases().values())


def _flipped(value: bytes) -> Iterator[bytes]:
    for at in range(len(value)):
        for bit in (1, 0x40, 0x80):
            yield value[:at] + bytes([value[at] ^ bit]) + value[at + 1 :]


def test_a_truncated_message_is_an_outcome_or_a_message_error() -> None:
    """Every case, cut at every byte."""
    for value in CASES:
        for end in range(len(value)):
            _decode(value[:end])


def test_a_flipped_bit_is_an_outcome_or_a_message_error() -> None:
    """Three bits of every byte of every case, flipped one at a time."""
    for value in CASES:
        for damaged in _flipped(value):
            _decode(damaged)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_random_damage_is_an_outcome_or_a_message_error(data: st.DataObject) -> None:
    """Bytes overwritten, taken out and put in anywhere."""
    value = bytearray(data.draw(st.sampled_from(CASES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(value)))
        end = data.draw(st.integers(at, min(at + 8, len(value))))
        value[at:end] = data.draw(st.binary(max_size=8))
    _decode(bytes(value))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
@example(b"")
@example(bytes(64))
def test_any_bytes_are_an_outcome_or_a_message_error(value: bytes) -> None:
    """Bytes of any origin."""
    _decode(value)


def _decode(value: bytes) -> None:
    with suppress(MessageError):
        DIALECT.decode(Message("raw", 0, 0, 0, None, value))
