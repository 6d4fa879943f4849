"""Messages with the events of a release. `python -m tests.compat.translations` writes those of this one.

The messages are the golden cases of all dialects, and changes in a shop for each format. A file contains the messages,
too, so it does not depend on later cases.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.state_format import release
from dev.demo.sources import interleaved, shop_sources
from tests.translator.dialects.case import find_cases
from translator.message import Message
from translator.operations.file_translator import of_dialect
from translator.operations.rewritten import Rewritten, rewritten

FOLDER = Path(__file__).with_name("translations")

_SEED = 20260320
_CHANGES = 60


class Conversation(Struct):
    """The messages of a source.

    Args:
        options: the dialect's options, and `tables`.
        schemas: documents that the source has learned from elsewhere, by key.
    """

    name: str
    dialect: str
    options: dict[str, Any]
    schemas: dict[str, str]
    messages: list[Message]


class Recorded(Struct):
    """A conversation, with the result for each message."""

    conversation: Conversation
    results: list[Rewritten]


def conversations() -> Iterator[Conversation]:
    for case in find_cases():
        schemas = {f"registry/{key}": json.dumps(value) for key, value in _read(case / "schemas.json").items()}
        options = _read(case / "options.json") | ({"tables": tables} if (tables := _read(case / "tables.json")) else {})
        (path,) = case.glob("message.*")
        keys = [path.read_bytes() for path in case.glob("key.*")]
        values = [*((None, path.read_bytes()) for path in sorted(case.glob("metadata*")))]
        values.append((keys[0] if keys else None, path.read_bytes()))
        yield Conversation(
            f"{case.parent.name}/{case.name}",
            case.parent.name,
            options,
            {**schemas, **_read(case / "documents.json")},
            [Message("topic", 0, offset, 0, key, value) for offset, (key, value) in enumerate(values)],
        )
    for source in shop_sources(_SEED):
        raw = interleaved([source.messages(_CHANGES, grow=source.can_grow)])
        yield Conversation(
            f"shop {source.name}",
            source.settings["dialect"],
            {**source.settings.get("options", {}), "tables": source.settings.get("tables", [])},
            {},
            [Message(one.topic, one.partition, number, 0, one.key, one.value) for number, one in enumerate(raw)],
        )


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else {}


def results(conversation: Conversation) -> list[Rewritten]:
    """Translate the messages with this release."""
    messages = conversation.messages
    again = of_dialect(conversation.dialect, conversation.options, "source", messages, lambda _: None, stops=False)
    for key, text in conversation.schemas.items():
        again.teach(key, text.encode())
    return [rewritten(again.translate(message)) for message in messages]


def file(number: str) -> Path:
    return FOLDER / f"{number}.json.gz"


def write(number: str, recorded: Sequence[Recorded]) -> None:
    FOLDER.mkdir(exist_ok=True)
    file(number).write_bytes(gzip.compress(msgspec.json.encode(recorded), mtime=0))


def read(number: str) -> Sequence[Recorded]:
    return msgspec.json.decode(gzip.decompress(file(number).read_bytes()), type=list[Recorded])


def recorded_releases() -> Mapping[str, Path]:
    return {path.name.removesuffix(".json.gz"): path for path in sorted(FOLDER.glob("*.json.gz"))}


if __name__ == "__main__":
    write(release(), [Recorded(conversation, results(conversation)) for conversation in conversations()])
