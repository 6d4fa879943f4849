"""Compare the reader for DTS records with fastavro, and measure the path from bytes to event: `python -m
bench.steps.dts_avro`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from fastavro import schemaless_reader, schemaless_writer

from bench.measure import best_times, machine, rate, table
from bench.steps.shop_updates import feed
from translator.codecs.avro import AvroCodec
from translator.dialects.dts_avro.reader import RecordReader
from translator.dialects.dts_avro.scan import compile_scan
from translator.dialects.dts_avro.schema import V2, V3
from translator.message import Limits, Message
from translator.translation.translate import RUN, Events, Translator

COLUMNS = (12, 60)
ROUNDS = 15
RECORDS = 640
"""The number of records in each round."""

_LIMITS = Limits()


def main() -> None:
    """Measure and print the results."""
    print(machine("fastavro"))
    print("\nTime from the bytes of an update with both images to a record, in microseconds per record.\n")
    print(reading(ROUNDS, RECORDS))
    print("\nTime from the bytes to the encoded event, in microseconds per message.\n")
    print(operations(ROUNDS, RECORDS))


# -- reading


def reading(rounds: int, count: int) -> str:
    """Compare the reader for this schema with the generic reader. Measure the latter both alone and together with the
    strict check that it needs.
    """
    head = ("columns", "bytes", "fastavro", "strict check + fastavro", "reader", "ratio")
    return table(head, [_reading_row(columns, rounds, count) for columns in COLUMNS])


def _reading_row(columns: int, rounds: int, count: int) -> list[str]:
    values = [message.value or b"" for message in feed("dts_avro", columns, count).messages]
    contestants: Mapping[str, Callable[[bytes], object]] = {
        "fastavro": _by_fastavro,
        "strict check + fastavro": _strictly,
        "reader": RecordReader(_LIMITS).read,
    }
    generic, strict, ours = best_times(
        contestants, lambda: [bytes(bytearray(value)) for value in values], rounds
    ).values()
    size = sum(map(len, values)) // len(values)
    return [str(columns), str(size), f"{generic:.1f}", f"{strict:.1f}", f"{ours:.1f}", f"{strict / ours:.1f}"]


_scan = compile_scan(V2, _LIMITS.columns)


def _by_fastavro(value: bytes) -> Any:
    return schemaless_reader(io.BytesIO(value), V3, None, return_named_type=True)


def _strictly(value: bytes) -> object:
    assert _scan(value, 0) < len(value)
    return _by_fastavro(value)


# -- from bytes to the encoded event


def operations(rounds: int, count: int) -> str:
    """Measure each operation with the same 12-column rows."""
    head = ("record", "bytes", "a message", "rate")
    return table(head, [_operation_row(name, rounds, count) for name in RECORDS_OF])


def _operation_row(name: str, rounds: int, count: int) -> list[str]:
    given = feed("dts_avro", COLUMNS[0], count)
    messages = [_written(RECORDS_OF[name], message) for message in given.messages]
    runs = [messages[start : start + RUN] for start in range(0, len(messages), RUN)]
    translator = Translator("bench", given.dialect, _LIMITS)
    encoded = partial(_encoded, translator, AvroCodec())
    (best,) = best_times({name: encoded}, partial(_fresh, runs), rounds).values()
    each = best * len(runs) / len(messages)
    size = sum(len(message.value or b"") for message in messages) // len(messages)
    return [name, str(size), f"{each:.1f}", rate(each)]


def _encoded(translator: Translator, codec: AvroCodec, run: Sequence[Message]) -> object:
    records = []
    for message, result in zip(run, translator.translate_run(run), strict=True):
        assert isinstance(result, Events), result
        records.append(translator.encode(codec, message, result))
    return records


def _fresh(runs: Sequence[Sequence[Message]]) -> list[list[Message]]:
    """Return messages with distinct bytes, because hashing or comparing the same bytes again would be cheaper."""
    return [
        [msgspec.structs.replace(message, value=bytes(bytearray(message.value or b""))) for message in run]
        for run in runs
    ]


Record = dict[str, Any]


def _as_sent(record: Record) -> Record:
    return record


def _without_before(record: Record) -> Record:
    return {**record, "beforeImages": None}


def _insert(record: Record) -> Record:
    return {**_without_before(record), "operation": "INSERT"}


def _delete(record: Record) -> Record:
    return {**record, "operation": "DELETE", "afterImages": None}


def _with_long_text(record: Record) -> Record:
    """Return a record with strings of 80 to 1 000 characters, such as comments and documents."""
    images = {name: [_long(cell) for cell in record[name]] for name in ("beforeImages", "afterImages")}
    return {**record, **images}


def _long(cell: Any) -> Any:
    if cell is None or not cell[0].endswith(".Character"):
        return cell
    return cell[0], {
        **cell[1],
        "value": (cell[1]["value"] + b" and so on").ljust(80) * (1 + len(cell[1]["value"]) % 12),
    }


RECORDS_OF: Mapping[str, Callable[[Record], Record]] = {
    "update, both images": _as_sent,
    "update, both images, long strings": _with_long_text,
    "update, after image": _without_before,
    "insert": _insert,
    "delete": _delete,
}


_TAGS = {"readerThroughoutTime": "1767600000123", "server_id": "1921057203", "thread_id": "7"}


def _written(change: Callable[[Record], Record], message: Message) -> Message:
    """Return the message with a changed record, as written by the demo's writer, and with the tags that a MySQL source
    has.
    """
    record = change(_by_fastavro(message.value or b""))
    record["tags"] = {
        **record["tags"],
        "readerThroughoutTime": "1767600000123",
        "server_id": "1921057203",
        "thread_id": "7",
    }
    out = io.BytesIO()
    schemaless_writer(out, V3, record)
    return msgspec.structs.replace(message, value=out.getvalue())


if __name__ == "__main__":
    main()
