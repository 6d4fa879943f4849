"""Store contradictions, so that they outlive the process that found them.

No process of the group reads the source until its options change.

A guard keeps its evidence only in memory. Without a stored mark, a restarted process, or the next owner of the
partition, would know nothing about the contradiction. It would write the messages that the first process refused to
write.
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
from translator.state.state_record import state_record

PREFIX = "!contradiction/"
"""Key prefix for contradictions in the metadata topic. Source names cannot contain `!`, so the prefix never
collides.
"""


class _Mark(Struct, frozen=True):
    declaration: str
    text: str


class Contradictions:
    """The marks of the configured sources."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._declarations = {source.name: _declaration(source) for source in sources}
        self.found: dict[str, str] = {}
        """The reasons, by source. Messages from these sources must not be translated."""

    def mark(self, source: str, error: ContradictionError) -> Record:
        """Record a contradiction. Returns the record that reports the contradiction to all current and future
        processes."""
        mark = _Mark(self._declarations[source], str(error))
        self._note(source, mark)
        return state_record(f"{PREFIX}{source}", msgspec.json.encode(mark))

    def apply(self, key: str, document: bytes) -> str | None:
        """Record a mark. Marks that were made under different options are ignored.

        Returns:
            The source, if the contradiction is new to this process.
        """
        source = key.removeprefix(PREFIX)
        mark = msgspec.json.decode(document, type=_Mark)
        if mark.declaration != self._declarations.get(source) or source in self.found:
            return None
        self._note(source, mark)
        return source

    def check(self) -> None:
        """Check that no source is stopped.

        Raises:
            ContradictionError: a mark is valid.
        """
        if self.found:
            raise ContradictionError(next(iter(self.found.values())))

    def _note(self, source: str, mark: _Mark) -> None:
        self.found[source] = f"{mark.text} (source {source} stays stopped until its options change)"


def _declaration(source: Source) -> str:
    """Return a digest of how a source's messages are read. To resolve a contradiction, the operator changes the options
    that the digest covers.
    """
    text = json.dumps([source.dialect, source.options], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
