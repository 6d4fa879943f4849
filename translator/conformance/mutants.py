"""Damaged and hostile variants of a message."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from translator.conformance.json_edits import document_of, edited, members, without
from translator.message import Message

_MOST = 100
"""Maximum number of mutants per message and kind of damage."""

_WHOLE: tuple[bytes | None, ...] = (
    *(None, b"", b"\x00", b"\xff\xfe\xfd", b"null", b"0", b'""', b"[]", b"{}", b"[{}]", b'{"":null}'),
    *(b"[" * 5000, b'{"a":' * 5000, b"\xef\xbb\xbf{}", b"{}{}"),
)
_KEYS: tuple[bytes | None, ...] = (None, b"", b"\xff", b"null", b"[]", b"{}", b'{"payload":0}', b"[" * 5000)
_HUGE_NUMBER, _LONE_SURROGATE = "@huge number@", "@lone surrogate@"
_TEXTS = {_HUGE_NUMBER: b"1e400", _LONE_SURROGATE: b'"\\ud800"'}
"""Values that Python does not write as JSON, by their placeholders."""

_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 2**70, 0.5, "", "x", "x" * 10_000, "\x00", "-0", [], {}, [[]], [None], {"": {}}),
    *(_HUGE_NUMBER, _LONE_SURROGATE),
)


def mutants(message: Message) -> Iterator[tuple[str, Message]]:
    """Return variants of a message, each with a description. The same message has the same variants in every run."""
    chance = random.Random(0)
    yield from _wholes(message)
    for what, value in (*_cuts(chance, message.value or b""), *_flips(chance, message.value or b"")):
        yield what, msgspec.structs.replace(message, value=value)
    for what, value in _edits(chance, message.value):
        yield what, msgspec.structs.replace(message, value=value)


def _places(chance: random.Random, value: bytes) -> list[int]:
    return chance.sample(range(len(value)), min(len(value), _MOST))


def _wholes(message: Message) -> Iterator[tuple[str, Message]]:
    for value in _WHOLE:
        yield f"value replaced by {_shown(value)}", msgspec.structs.replace(message, value=value)
    for key in _KEYS:
        yield f"key replaced by {_shown(key)}", msgspec.structs.replace(message, key=key)


def _shown(data: bytes | None) -> str:
    return "nothing" if data is None else repr(data[:12])


def _cuts(chance: random.Random, value: bytes) -> Iterator[tuple[str, bytes]]:
    yield from ((f"cut after byte {end}", value[:end]) for end in _places(chance, value))


def _flips(chance: random.Random, value: bytes) -> Iterator[tuple[str, bytes]]:
    for place in _places(chance, value):
        damaged = bytearray(value)
        damaged[place] ^= 1 << chance.randrange(8)
        yield f"a bit of byte {place} flipped", bytes(damaged)


def _edits(chance: random.Random, value: bytes | None) -> Iterator[tuple[str, bytes]]:
    document = document_of(value)
    paths = [] if document is None else [path for path, _ in members(document)]
    edits = [(path, index) for path in paths for index in range(-1 if isinstance(path[-1], str) else 0, len(_VALUES))]
    for path, index in chance.sample(edits, min(len(edits), _MOST)):
        place = ".".join(map(str, path))
        if index < 0:
            yield f"{place} removed", _text(without(document, path))
        else:
            other = _VALUES[index]
            yield f"{place} replaced by {str(other)[:20]!r}", _text(edited(document, {path: other}))


def _text(document: Any) -> bytes:
    text = json.dumps(document).encode()
    for placeholder, wanted in _TEXTS.items():
        text = text.replace(b'"%s"' % placeholder.encode(), wanted)
    return text
