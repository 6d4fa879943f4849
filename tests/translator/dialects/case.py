"""A case: a folder `cases/<dialect>/<name>` with a message and its expected result.

message.*      the Kafka value, byte for byte (.json, .txt, .bin)
expected.json  the outcome, written by `write_expected` and reviewed by a person
about.md       where the message comes from and what is special about it; an optional last line `Shows:` lists the
               requirements (requirements.toml) that the case covers
options.json   options of the dialect (optional)
tables.json    declared tables, as in `tables:` of the configuration (optional)
metadata*      messages that are learned first, in name order (optional)
documents.json known documents of the metadata topic by key, each a text (optional)
schemas.json   known registry schemas by id (optional)
key.*          the Kafka key, byte for byte (optional)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from translator.dialects import build
from translator.errors import MessageError
from translator.message import Change, Changes, DeclaredTable, Dialect, Learned, Message, Needs, Outcome, Setup, Skip

CASES = Path(__file__).with_name("cases")
EXPECTED = "expected.json"


def find_cases() -> list[Path]:
    """Return all case folders. Their location defines the dialect."""
    return sorted(path for path in CASES.glob("*/*") if path.is_dir())


def outcome_of(case: Path) -> Any:
    """Return the dialect's outcome for the case as JSON."""
    dialect, message = opened(case)
    try:
        outcome = dialect.decode(message)
    except MessageError as error:
        return {"dead_letter": error.code.value, "reason": error.reason, "path": error.path}
    return json.loads(msgspec.json.encode(_described(outcome)))


def opened(case: Path, **changed: object) -> tuple[Dialect, Message]:
    """Return the dialect of the case, after learning its metadata, and the message.

    Args:
        changed: options in addition to those of the case.
    """
    learned: dict[str, object] = {}
    dialect = build(case.parent.name, _setup(case, learned), {**_json(case / "options.json", {}), **changed})
    for path in sorted(case.glob("metadata*")):
        _learn(dialect, path, learned)
    for key, document in _json(case / "documents.json", {}).items():
        learned[key] = dialect.learn(key, document.encode())
    for number, schema in _json(case / "schemas.json", {}).items():
        key = f"registry/{number}"
        learned[key] = dialect.learn(key, json.dumps(schema).encode())
    (path,) = case.glob("message.*")
    keys = [path.read_bytes() for path in case.glob("key.*")]
    return dialect, msgspec.structs.replace(_message(path), key=keys[0] if keys else None)


def shown_by(case: Path) -> tuple[str, ...]:
    """Return the ids of the requirements that the case's about.md lists."""
    last = (case / "about.md").read_text(encoding="utf-8").strip().rpartition("\n")[2]
    return tuple(last.removeprefix("Shows: ").split(", ")) if last.startswith("Shows: ") else ()


def _setup(case: Path, learned: dict[str, object]) -> Setup:
    tables = msgspec.convert(_json(case / "tables.json", []), tuple[DeclaredTable, ...])
    return Setup("source", tables=tables, lookup=learned.get)


def _learn(dialect: Dialect, path: Path, learned: dict[str, object]) -> None:
    outcome = dialect.decode(_message(path))
    assert isinstance(outcome, Learned), f"{path} is no metadata message"
    learned[outcome.key] = dialect.learn(outcome.key, outcome.document)


def _message(path: Path) -> Message:
    return Message("topic", 0, 0, 0, None, path.read_bytes())


def _json(path: Path, default: Any) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else default


def _without_types(change: Change) -> Any:
    """Return a change without column types, which are in its schema if a reader needs them."""
    described = msgspec.to_builtins(change)
    described.pop("types", None)
    return described


def _described(outcome: Outcome) -> Any:
    match outcome:
        case Changes(changes):
            return [_without_types(change) for change in changes]
        case Skip(reason):
            return {"skip": reason}
        case Learned(key, _, announces):
            return {"learned": key, "announces": announces} if announces else {"learned": key}
        case Needs(key):
            return {"needs": key}
