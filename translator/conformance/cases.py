"""Read the golden cases of a plug-in. Each case is one JSON file with messages, and with the translator's result for
each message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from translator.errors import ConfigError
from translator.message import DeclaredTable, Learned, Message, Skip
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter

FOLDER = "cases"
"""The folder with a plug-in's cases, next to its pyproject.toml."""

_NOT_OF_THE_PLUGIN = frozenset(
    {"v", "id", "source", "dialect", "pos", "pos_scope", "ts_origin_us", "schema_id", "origin"}
)
"""The event fields that the translator sets, not the plug-in."""


class Case(Struct, frozen=True):
    """The messages that one dialect reads, in order.

    Args:
        options: the source's options.
        tables: the declared tables, as in the configuration.
        expected: the result for each message, or None if it has not been written yet.
        file: the case's file, if it has one.
    """

    name: str
    messages: tuple[Message, ...]
    options: Mapping[str, Any] = {}
    tables: tuple[DeclaredTable, ...] = ()
    expected: Sequence[Any] | None = None
    file: str | None = None


class _StoredMessage(Struct, forbid_unknown_fields=True):
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None


class _StoredCase(Struct, forbid_unknown_fields=True):
    messages: list[_StoredMessage]
    about: str = ""
    options: dict[str, Any] = {}
    tables: tuple[DeclaredTable, ...] = ()
    expected: list[Any] | msgspec.UnsetType = msgspec.UNSET


def read_cases(package: Path) -> list[Case]:
    """Return a plug-in's cases, ordered by name.

    Raises:
        ConfigError: the plug-in has no cases, or a file is not a case.
    """
    files = sorted((package / FOLDER).glob("*.json"))
    if not files:
        raise ConfigError(f"{package / FOLDER} contains no cases; write one as shown in docs/dialects/your-own.md")
    return [_case(file) for file in files]


def _case(file: Path) -> Case:
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=_StoredCase)
        messages = tuple(_message(number, one) for number, one in enumerate(stored.messages))
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"{file}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    expected = None if stored.expected is msgspec.UNSET else stored.expected
    if not messages or (expected is not None and len(expected) != len(messages)):
        raise ConfigError(f"{file}: expected at least one message, and as many results in `expected` as messages")
    return Case(file.stem, messages, stored.options, stored.tables, expected, str(file))


def _message(offset: int, stored: _StoredMessage) -> Message:
    key = None if stored.key is None else stored.key.encode()
    if stored.key_base64 is not None:
        key = base64.b64decode(stored.key_base64, validate=True)
    return Message("raw", 0, offset, 0, key, _value(stored))


def _value(stored: _StoredMessage) -> bytes | None:
    """Return the value. As in a record file, a string is the message as text, and an object is the message itself."""
    if stored.value_base64 is not None:
        return base64.b64decode(stored.value_base64, validate=True)
    if stored.value is msgspec.UNSET:
        return None
    if (raw := bytes(stored.value)) == b"null":
        return None
    return msgspec.json.decode(raw, type=str).encode() if raw.startswith(b'"') else raw


def result_of(translation: Translation) -> Any:
    """Return a message's result in the format of `expected`: its events, without fields that have no value."""
    match translation.outcome:
        case DeadLetter(code=code, reason=reason):
            return {"dead_letter": str(code), "reason": plain_reason(reason)}
        case Skip(reason=reason):
            return {"skipped": reason}
        case Learned(key=key):
            return {"learned": key}
    return [_event(json.loads(record.value or b"{}")) for record in translation.canonical]


def plain_reason(reason: str) -> str:
    """Return the reason of a dead letter without the dialect and the position, which the translator adds."""
    return reason.partition(": ")[2].rpartition(" (topic ")[0]


def _event(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _NOT_OF_THE_PLUGIN and value is not None}


def write_expected(case: Case, results: Sequence[Any]) -> None:
    """Add the results to the case's file, with one line per event. The rest of the file does not change.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    file = Path(case.file or "")
    text = ",\n".join(f"    {_lines(result)}" for result in results)
    try:
        head = file.read_text(encoding="utf-8").rstrip().removesuffix("}").rstrip()
        file.write_text(f'{head},\n  "expected": [\n{text}\n  ]\n}}\n', encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None


def _lines(result: Any) -> str:
    if not isinstance(result, list):
        return json.dumps(result, ensure_ascii=False)
    events = ",\n".join(f"      {json.dumps(event, ensure_ascii=False)}" for event in result)
    return f"[\n{events}\n    ]"
