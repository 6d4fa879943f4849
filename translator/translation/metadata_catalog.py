"""The process's knowledge beside the messages: schemas already written, metadata already learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from translator.errors import CdcError, MessageError
from translator.message import Dialect, Lookup, Versioned
from translator.translation.translate import Translator

Named: TypeAlias = tuple[str, str]
"""A source and a key of its metadata."""

V = TypeVar("V")

REMEMBERED = 10_000
"""Keys that were waited for in vain, or whose document was refused: messages name them, so that they need a bound."""


def _nobody(source: str, key: str) -> None:
    return None


class MetadataCatalog:
    """Filled from the compacted topics at start, by this process and by the tail of those topics afterwards.

    Args:
        conflict: is told the source and the key of metadata of which two documents disagree.
    """

    def __init__(self, conflict: Callable[[str, str], None] = _nobody) -> None:
        self._conflict = conflict
        self._announced: set[str] = set()
        self._documents: dict[Named, bytes] = {}
        self._metadata: dict[Named, object] = {}
        self._given_up: dict[Named, None] = {}
        self._refused: dict[Named, MessageError] = {}

    def is_announced(self, topic_key: str) -> bool:
        """Say whether the schemas topic holds the schema of this key: a row may name it only then."""
        return topic_key in self._announced

    def announced(self, topic_key: str) -> None:
        """The schemas topic holds the schema of this key."""
        self._announced.add(topic_key)

    def learn(self, source: str, key: str, document: bytes, dialect: Dialect) -> bool:
        """Takes in a metadata document of a source; False when a newer one of this key is known, which stays.

        Learning the same document again changes nothing. Of two that disagree the newest stands in whatever order they
        come, so that all processes, and a replay, come to the same one (docs/formats/qlik.md §11, Metadata).

        Raises:
            MessageError: the dialect refuses the document.
        """
        name = source, key
        if self._documents.get(name) == document:
            return True
        learned = dialect.learn(key, document)
        known = self._metadata.get(name)
        if known is not None:
            if _disagree(known, learned):
                self._conflict(source, key)
            if _newer(known, learned):
                return False
        self._documents[name] = document
        self._metadata[name] = learned
        self._given_up.pop(name, None)
        self._refused.pop(name, None)
        return True

    def register(self, translator: Translator, key: str, document: bytes) -> bool:
        """`learn` for the translator's source.

        Raises:
            MessageError: the dialect refuses the document. So does INTERNAL where it stumbles over it: what somebody
                else wrote must not stop the process.
        """
        try:
            return self.learn(translator.source, key, document, translator.dialect)
        except CdcError:
            raise
        except Exception as error:
            raise translator.unexpected(error) from None

    def document(self, source: str, key: str) -> bytes | None:
        """The document that stands."""
        return self._documents.get((source, key))

    def lookup(self, source: str) -> Lookup:
        """The look-up that the dialect of a source is built with."""
        return lambda key: self._metadata.get((source, key))

    def give_up(self, source: str, key: str) -> None:
        """Waiting for this metadata took too long; later messages that need it do not wait again."""
        remember(self._given_up, (source, key), None)

    def is_given_up(self, source: str, key: str) -> bool:
        return (source, key) in self._given_up

    def refuse(self, source: str, key: str, reason: MessageError) -> None:
        """The document of this key cannot be read; no message needs to ask again."""
        remember(self._refused, (source, key), reason)

    def refusal(self, source: str, key: str) -> MessageError | None:
        """Return the reason why the document of this key cannot be read; None when it was not refused."""
        return self._refused.get((source, key))


def remember(known: dict[Named, V], name: Named, value: V) -> None:
    """Keeps what is known of a key; beyond REMEMBERED the oldest is forgotten, and its next message waits once more."""
    known[name] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]


def _disagree(known: object, learned: object) -> bool:
    """Documents without versions disagree when their bytes differ, which is known by now."""
    if isinstance(known, Versioned) and isinstance(learned, Versioned):
        return known.content != learned.content
    return True


def _newer(known: object, learned: object) -> bool:
    """Say whether the known one is newer than the one that came; without versions the last one stands."""
    return isinstance(known, Versioned) and isinstance(learned, Versioned) and known.version > learned.version
