"""Measure the encoding of an event, and each step from message to record: `python -m bench.steps.codec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.measure import best_times, machine, rate, table
from bench.steps.fastavro_events import fastavro_datum
from bench.steps.shop_updates import SOURCES, DialectFeed, feed
from cdc_core.envelope import ChangeEvent
from translator.codecs._datum import encode_datum
from translator.codecs.avro import HEADER, AvroCodec
from translator.dialects._json import parse
from translator.dialects.dts_avro.reader import RecordReader
from translator.message import Limits, Message
from translator.translation.translate import RUN, Events, Result, Translator

COLUMNS = (5, 20, 60, 200)
BUDGET_COLUMNS = 12
ROUNDS = 15
EVENTS = 400
"""The number of events in each round. With 200 columns, these events take 4 MB, which is more than the CPU cache holds.
"""

_LIMITS = Limits()


def main() -> None:
    """Measure and print the results."""
    print(machine("msgspec", "fastavro"))
    print(
        "\nTime from an event with both images to Avro bytes (record: with key and headers), in microseconds per "
        "event.\n"
    )
    print(encoding(ROUNDS, EVENTS))
    print(f"\nTime from a message with an update of {BUDGET_COLUMNS} columns to its record, in us per event.\n")
    print(budget(ROUNDS, EVENTS))


def encoding(rounds: int, count: int) -> str:
    """Compare the hand-written encoder with fastavro, by number of columns."""
    head = ("columns", "bytes", "fastavro", "hand-written", "ratio", "rate", "record", "record rate")
    return table(head, [_encoding_row(columns, rounds, count) for columns in COLUMNS])


def _encoding_row(columns: int, rounds: int, count: int) -> list[str]:
    given = feed("canal", columns, count)
    sizes = [len(_checked(event)) for event in _events(given)]
    contestants: Mapping[str, Callable[[ChangeEvent], object]] = {
        "fastavro": lambda event: fastavro_datum(event, HEADER),
        "hand-written": lambda event: encode_datum(event, HEADER),
        "record": AvroCodec().encode,
    }
    theirs, ours, record = best_times(contestants, partial(_events, given), rounds).values()
    figures = [f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}", rate(ours), f"{record:.1f}", rate(record)]
    return [str(columns), str(sum(sizes) // len(sizes)), *figures]


def budget(rounds: int, count: int) -> str:
    """Return the time that each step takes, by dialect. It is the difference between two calls. One of them ends a
    step later.
    """
    head = ("dialect", "parse", "convert", "build", "encode", "sum", "rate", "rate without parse")
    return table(head, [_budget_row(name, rounds, count) for name in SOURCES])


def _budget_row(name: str, rounds: int, count: int) -> list[str]:
    given = feed(name, BUDGET_COLUMNS, count)
    runs = [given.messages[start : start + RUN] for start in range(0, count, RUN)]
    best = best_times(_up_to_each_step(name, given), lambda: runs, rounds)
    parsed, decoded, translated, encoded = (time * len(runs) / count for time in best.values())
    steps = (parsed, decoded - parsed, translated - decoded, encoded - translated, encoded)
    return [name, *(f"{step:.1f}" for step in steps), rate(encoded), rate(encoded - parsed)]


def _up_to_each_step(name: str, given: DialectFeed) -> Mapping[str, Callable[[Sequence[Message]], object]]:
    """Return the steps. Each step processes a run of messages, as in the service."""
    translator = Translator("bench", given.dialect, _LIMITS)
    codec = AvroCodec()
    parse_one, decode = _PARSERS[name], given.dialect.decode

    def encoded(run: Sequence[Message]) -> object:
        results = translator.translate_run(run)
        return [translator.encode(codec, message, _sure(result)) for message, result in zip(run, results, strict=True)]

    return {
        "parse": lambda run: [parse_one(message) for message in run],
        "decode": lambda run: [decode(message) for message in run],
        "translate": translator.translate_run,
        "encode": encoded,
    }


def _parse_json(message: Message) -> object:
    return parse(message.value or b"", _LIMITS)


_reader = RecordReader(_LIMITS)


def _parse_record(message: Message) -> object:
    return _reader.read(message.value or b"")


_PARSERS: Mapping[str, Callable[[Message], object]] = {
    "canal": _parse_json,
    "dts_avro": _parse_record,
    "qlik": _parse_json,
    "shareplex": _parse_json,
}


def _events(given: DialectFeed) -> list[ChangeEvent]:
    translator = Translator("bench", given.dialect, _LIMITS)
    return [event for message in given.messages for event in _sure(translator.translate(message)).events]


def _sure(result: Result) -> Events:
    assert isinstance(result, Events), result
    return result


def _checked(event: ChangeEvent) -> bytes:
    """Return the event's bytes, after checking that all contestants agree on them."""
    value = encode_datum(event, HEADER)
    assert value == fastavro_datum(event, HEADER) == AvroCodec().encode(event)[0].value
    return value


if __name__ == "__main__":
    main()
