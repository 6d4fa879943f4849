"""The laws of every codec: its output can be read, and the same event always gives the same bytes."""

from collections.abc import Callable
from typing import Protocol

import pytest
from hypothesis import given

from cdc_core.envelope import ChangeEvent
from tests.translator.examples import UPDATE
from tests.translator.strategies import events
from translator.codecs import CODECS, Framing, build
from translator.codecs.avro import AvroCodec, confluent_header
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record, record_headers, record_key
from translator.codecs.registered import TableSchemas, unknown_id


class Reversible(Protocol):
    """A codec that can read its output."""

    name: str

    def encode(self, event: ChangeEvent) -> list[Record]: ...

    def decode(self, value: bytes) -> ChangeEvent: ...


FRAMING = Framing(tables=TableSchemas(unknown_id, lambda event: "t"))

REVERSIBLE: dict[str, Callable[[], Reversible]] = {
    "avro": AvroCodec,
    "avro with a registry": lambda: AvroCodec(confluent_header(7)),
    "json": JsonCodec,
}


@pytest.fixture(params=REVERSIBLE.values(), ids=list(REVERSIBLE), scope="module")
def make(request: pytest.FixtureRequest) -> Callable[[], Reversible]:
    """Every codec that can read its output."""
    made: Callable[[], Reversible] = request.param
    return made


def _value(codec: Reversible, event: ChangeEvent) -> bytes:
    (record,) = codec.encode(event)
    assert record.value is not None
    return record.value


def test_names() -> None:
    """A codec's name is its key in the dictionary and its name in the configuration."""
    assert list(CODECS) == [build(name, {}, FRAMING).name for name in CODECS]


def test_all_reversible_ones() -> None:
    """The laws below cover every codec that decodes."""
    assert {make().name for make in REVERSIBLE.values()} == {
        name for name in CODECS if hasattr(build(name, {}, FRAMING), "decode")
    }


@given(event=events())
def test_round_trip(make: Callable[[], Reversible], event: ChangeEvent) -> None:
    """Decoding returns the event, with null, empty and absent values and the exact text of the images."""
    codec = make()
    assert event == codec.decode(_value(codec, event))


@given(event=events())
def test_same_bytes(make: Callable[[], Reversible], event: ChangeEvent) -> None:
    """Two codec objects used in turn write an event as the same bytes."""
    first, second = make(), make()
    _value(second, UPDATE)
    assert _value(first, event) == _value(second, event)


@given(event=events())
def test_record(make: Callable[[], Reversible], event: ChangeEvent) -> None:
    """One event is one record, with the key and headers that these codecs share."""
    (record,) = make().encode(event)
    assert (record_key(event), record_headers(event)) == (record.key, record.headers)
