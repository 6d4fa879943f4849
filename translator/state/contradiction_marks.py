"""Contradictions outlive the process that met them: until the declaration is another, no process of the group goes on.

A guard's evidence is in memory. Without a mark that stays, a supervisor's restart, or the process that gets the
partition next, would know nothing of it and write what the first one refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from translator.codecs.record import Record
from translator.config.settings import Source
from translator.errors import ContradictionError

PREFIX = "!contradiction/"
"""Of keys in the metadata topic. No source can be named so that its metadata have it."""


class _Mark(Struct, frozen=True):
    declaration: str
    text: str


class Contradictions:
    """The marks of the configured sources."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._declarations = {source.name: _declaration(source) for source in sources}

    def mark(self, source: str, error: ContradictionError) -> Record:
        """The record that tells all processes, now and later."""
        mark = _Mark(self._declarations[source], str(error))
        return Record(f"{PREFIX}{source}".encode(), msgspec.json.encode(mark), [])

    def check(self, key: str, document: bytes) -> None:
        """Takes a mark in. One that was made under another declaration than the present one says nothing.

        Raises:
            ContradictionError: the mark stands.
        """
        source = key.removeprefix(PREFIX)
        mark = msgspec.json.decode(document, type=_Mark)
        if mark.declaration == self._declarations.get(source):
            raise ContradictionError(
                f"{mark.text} (found before; source {source} stands still until its options change)"
            )


def _declaration(source: Source) -> str:
    """A digest of how the messages of a source are read: another one is the operator's answer to a contradiction."""
    text = json.dumps([source.dialect, source.options], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
