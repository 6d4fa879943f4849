"""Measure the path from a Canal message to events, by profile and number of rows per message: `python -m
bench.steps.canal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bench.measure import best_times, machine, rate, table
from bench.steps.shop_updates import feed
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.translate import RUN, Events, Translator

COLUMNS = 12
ROUNDS = 15
ROWS = 3_200
"""The number of rows in each round, regardless of the number of rows per message."""

ROWS_A_MESSAGE = (1, 100)


def main() -> None:
    """Measure and print the results."""
    print(machine("msgspec"))
    print(f"\nTime from bytes to events, for updates of {COLUMNS} columns, in microseconds per row.\n")
    print(profiles(ROUNDS, ROWS))


def profiles(rounds: int, rows: int) -> str:
    """Return the table of results. All profiles have the same updates."""
    head = ("profile", "rows a message", "bytes a message", "a row", "row rate")
    return table(head, [_row(profile, size, rounds, rows) for profile in SPELLINGS for size in ROWS_A_MESSAGE])


def _row(profile: str, size: int, rounds: int, rows: int) -> list[str]:
    messages = _joined([_spelled(profile, message) for message in feed("canal", COLUMNS, rows).messages], size)
    runs = [messages[start : start + RUN] for start in range(0, len(messages), RUN)]
    translator = Translator("bench", build("canal", Setup("bench"), {"profile": profile}), Limits())
    _check(translator, messages, rows)
    (best,) = best_times({profile: translator.translate_run}, lambda: runs, rounds).values()
    each = best * len(runs) / rows
    width = sum(len(message.value or b"") for message in messages) // len(messages)
    return [profile, str(size), str(width), f"{each:.1f}", rate(each)]


def _check(translator: Translator, messages: Sequence[Message], rows: int) -> None:
    """Check that every row produces an event."""
    results = [translator.translate(message) for message in messages]
    assert rows == sum(len(result.events) for result in results if isinstance(result, Events))


def _oss(body: dict[str, Any]) -> dict[str, Any]:
    return body


def _ticdc(body: dict[str, Any]) -> dict[str, Any]:
    """Return a message in TiCDC's format, with all columns in `old`, ID 0, and TiCDC's own field."""
    old = [row | changed for row, changed in zip(body["data"], body["old"], strict=True)]
    return {**body, "id": 0, "old": old, "_tidb": {"commitTs": body["es"] << 18}}


SPELLINGS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"oss": _oss, "ticdc": _ticdc}


def _spelled(profile: str, message: Message) -> Message:
    return msgspec.structs.replace(message, value=msgspec.json.encode(SPELLINGS[profile](_body(message))))


def _joined(messages: Sequence[Message], size: int) -> list[Message]:
    """Return messages with `size` rows each, as canal writes the rows from one statement."""
    return [_one(messages[start : start + size]) for start in range(0, len(messages), size)]


def _one(messages: Sequence[Message]) -> Message:
    bodies = [_body(message) for message in messages]
    rows = {name: [row for body in bodies for row in body[name]] for name in ("data", "old")}
    return msgspec.structs.replace(messages[0], value=msgspec.json.encode({**bodies[0], **rows}))


def _body(message: Message) -> dict[str, Any]:
    return msgspec.json.decode(message.value or b"", type=dict[str, Any])


if __name__ == "__main__":
    main()
