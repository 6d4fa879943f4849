"""A case: a folder `cases/<dialect>/<name>` with a message and what must come out of it.

message.*      the Kafka value, byte for byte (.json, .txt, .bin)
expected.json  the outcome, written by `write_expected` and reviewed by a person
about.md       where the message comes from and what is special about it; a last line `Shows:` names the requirements
               (requirements.toml) that the case shows
options.json   options of the dialect (optional)
tables.json    declared tables, as in `tables:` of the configuration (optional)
metadata*      messages that are learned first, in the order of their names (optional)
documents.json documents of the metadata topic by key, each a text, that are known (optional)
schemas.json   schemas of a registry by id, that are known (optional)
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
    """All case folders; what they are is seen from where they lie."""
    return sorted(path for path in CASES.glob("*/*") if path.is_dir())


def outcome_of(case: Path) -> Any:
    """What the dialect makes of the case, as JSON shows it."""
    dialect, message = opened(case)
    try:
        outcome = dialect.decode(message)
    except MessageError as error:
        return {"dead_letter": error.code.value, "reason": error.reason, "path": error.path}
    return json.loads(msgspec.json.encode(_described(outcome)))


def opened(case: Path, **changed: object) -> tuple[Dialect, Message]:
    """The dialect of the case, which has learned what there is to learn, and the message.

    Args:
        changed: options beside those of the case.
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
    """Return the ids of the requirements that the case shows, as its about.md names them."""
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
    """A change without the types of its columns: its schema has them, where it matters to a reader."""
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
