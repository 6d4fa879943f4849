"""Measure the path from a SharePlex message to its encoded event, by shape and step: `python -m
bench.steps.shareplex`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from bench.measure import best_times, machine, rate, table
from bench.steps.shop_updates import feed
from translator.codecs.avro import AvroCodec
from translator.dialects import build
from translator.message import DeclaredTable, Dialect, Limits, Message, Setup
from translator.translation.translate import RUN, Events, Translator

COLUMNS = 10
ROUNDS = 15
MESSAGES = 3_200
"""The number of messages in each round."""

_KINDS = ("int64", "string", "decimal(14,2)", "timestamp", "int32", "date", "float64")
_DECLARED = DeclaredTable(
    "SHOP.*", ("id",), {f"column_{n}" if n else "id": _KINDS[n % len(_KINDS)] for n in range(COLUMNS)}
)

Body = dict[str, Any]


def main() -> None:
    """Measure and print the results."""
    print(machine("msgspec"))
    print(f"\nTime from bytes to records, for a table with {COLUMNS} columns, in microseconds per message.\n")
    print(shapes(ROUNDS, MESSAGES))


def shapes(rounds: int, count: int) -> str:
    """Measure each form that a change may have. The time of a step is the difference between two calls. One of them
    ends a step later.
    """
    head = ("message", "bytes", "decode", "build", "encode", "sum", "rate")
    return table(head, [_row(name, rounds, count) for name in SHAPES])


def _row(name: str, rounds: int, count: int) -> list[str]:
    given = messages(name, count)
    runs = [given[start : start + RUN] for start in range(0, count, RUN)]
    best = best_times(steps(dialect(), given), lambda: runs, rounds)
    decoded, translated, encoded = (time * len(runs) / count for time in best.values())
    width = sum(len(message.value or b"") for message in given) // count
    figures = (decoded, translated - decoded, encoded - translated, encoded)
    return [name, str(width), *(f"{figure:.1f}" for figure in figures), rate(encoded)]


def dialect() -> Dialect:
    """Return the dialect in a typical configuration, with a declared key and declared columns."""
    return build("shareplex", Setup("bench", tables=(_DECLARED,)), {"preset": "dts"})


def steps(dialect: Dialect, given: Sequence[Message]) -> Mapping[str, Callable[[Sequence[Message]], object]]:
    """Return the steps. Each entry processes a run of messages, as in the service, and ends one step later than the
    previous entry.
    """
    translator, codec = Translator("bench", dialect, Limits()), AvroCodec()

    def decoded(run: Sequence[Message]) -> object:
        return [dialect.decode(message) for message in run]

    def encoded(run: Sequence[Message]) -> object:
        results = translator.translate_run(run)
        return [
            translator.encode(codec, message, result)
            for message, result in zip(run, results, strict=True)
            if isinstance(result, Events)
        ]

    # Check that no message is rejected.
    assert all(
        isinstance(result, Events) for run in (given[:RUN], given[-RUN:]) for result in map(translator.translate, run)
    )
    return {"decode": decoded, "build": translator.translate_run, "encode": encoded}


def messages(name: str, count: int) -> Sequence[Message]:
    """Return the shop's updates in one of the shapes."""
    spelled = SHAPES[name]
    return [
        msgspec.structs.replace(message, value=_compact(spelled(_body(message), row)))
        for message, row in zip(feed("shareplex", COLUMNS, count).messages, _rows(count), strict=True)
    ]


def _rows(count: int) -> Sequence[Body]:
    """Return whole rows. They are taken from the shop's Canal messages, because Canal sends all columns."""
    cells = (_body(message)["data"][0] for message in feed("canal", COLUMNS, count).messages)
    return [{name: _native(name, text) for name, text in row.items()} for row in cells]


def _native(name: str, text: str | None) -> Any:
    """Return a cell in the format that SharePlex's Post process writes. Numbers have all their digits."""
    type_ = (_DECLARED.columns or {})[name]
    if text is None or not type_.startswith(("int", "dec", "float")):
        return text
    return msgspec.Raw(format(Decimal(text), "f").encode())


def _update(body: Body, row: Body) -> Body:
    return {**body, "data": {name: row[name] for name in body["data"]}}


def _wide_update(body: Body, row: Body) -> Body:
    """Return an update in which all columns are logged. Its `key` is the whole old row."""
    return {**_update(body, row), "key": row}


def _insert(body: Body, row: Body) -> Body:
    return {"meta": {**body["meta"], "op": "ins"}, "data": row}


def _whole_meta(body: Body, row: Body) -> Body:
    """Return an insert for which all metadata is enabled."""
    meta = {
        **body["meta"],
        "op": "ins",
        "userid": 84,
        "scn": "14589063118712",
        "rowid": "AAATGpAAIAAItcIAAA",
        "trans": "7.0.411499",
        "seq": 1,
        "size": 11,
        "idx": "1/11",
        "posttime": body["meta"]["time"],
    }
    return {"meta": meta, "data": row}


def _delete(body: Body, row: Body) -> Body:
    return {"meta": {**body["meta"], "op": "del"}, "data": row}


SHAPES: Mapping[str, Callable[[Body, Body], Body]] = {
    "insert": _insert,
    "insert, all metadata": _whole_meta,
    "update, key only": _update,
    "update, all columns logged": _wide_update,
    "delete": _delete,
}


def _body(message: Message) -> Body:
    return msgspec.json.decode(message.value or b"", type=Body)


def _compact(body: Body) -> bytes:
    """Format a body just as native Post does, without white space except before the last brace."""
    return msgspec.json.encode(body)[:-1] + b" }"


if __name__ == "__main__":
    main()
