"""Keep the published schemas and the learned metadata that a process uses in addition to the messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from typing import TypeAlias, TypeVar

from translator.errors import CdcError, ErrorCode, MessageError
from translator.message import Dialect, Lookup, Versioned
from translator.translation.translate import Translator

Named: TypeAlias = tuple[str, str]
"""A source and one of its metadata keys."""

V = TypeVar("V")

REMEMBERED = 10_000
"""Maximum number of missing or rejected keys to remember. The keys come from messages, so there may be many."""


def _nobody(source: str, key: str) -> None:
    return None


class MetadataCatalog:
    """The catalog is filled from the compacted topics at startup. Later entries come from this process and from
    following these topics.

    Args:
        conflict: called with the source and the metadata key if two documents contradict each other.
    """

    def __init__(self, conflict: Callable[[str, str], None] = _nobody) -> None:
        self._conflict = conflict
        self._announced: set[str] = set()
        self._schemas: defaultdict[str, set[str]] = defaultdict(set)  # accepted or announced, by source
        self._document_bytes: Counter[str] = Counter()  # by source
        self._documents: dict[Named, bytes] = {}
        self._metadata: dict[Named, object] = {}
        self._given_up: dict[Named, None] = {}
        self._refused: dict[Named, MessageError] = {}

    def is_announced(self, topic_key: str) -> bool:
        """Return whether the schemas topic contains the schema with this key. Only then may a row refer to it."""
        return topic_key in self._announced

    def announced(self, topic_key: str) -> None:
        """Record that the schemas topic contains the schema with this key."""
        self._announced.add(topic_key)
        self._schemas[topic_key.partition("/")[0]].add(topic_key)

    def accept_schemas(self, source: str, topic_keys: Collection[str], allowed: int) -> None:
        """Accept schemas to publish. Names of schemas come from messages, and the schemas topic keeps every schema.

        Raises:
            MessageError: LIMIT_EXCEEDED, and none of the schemas is accepted.
        """
        known = self._schemas[source]
        # The schemas are counted without making a copy, because a source can have thousands of them.
        if len(known) + sum(key not in known for key in topic_keys) > allowed:
            reason = f"the source has {len(known)} table schemas, but only {allowed} are allowed (limits.schemas)"
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
        known.update(topic_keys)

    def check_document(self, source: str, key: str, document: bytes, allowed: int) -> None:
        """Check that a source may learn a metadata document, which may replace an earlier one.

        Raises:
            MessageError: LIMIT_EXCEEDED.
        """
        known = self._document_bytes[source] - len(self._documents.get((source, key), b""))
        if known + len(document) > allowed:
            reason = (
                f"the source's metadata documents have {known} bytes; another "
                f"{len(document)} bytes would exceed {allowed} (limits.metadata_bytes)"
            )
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)

    def learn(self, source: str, key: str, document: bytes, dialect: Dialect) -> bool:
        """Learn a source's metadata document. It returns False if a newer document for this key is known. That one is
        then kept.

        Learning the same document again has no effect. If two documents contradict each other, the newer one is kept,
        whichever arrives first. All processes and replays therefore reach the same state (docs/formats/qlik.md §11,
        Metadata).

        Raises:
            MessageError: the dialect rejects the document.
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
        self._document_bytes[source] += len(document) - len(self._documents.get(name, b""))
        self._documents[name] = document
        self._metadata[name] = learned
        self._given_up.pop(name, None)
        self._refused.pop(name, None)
        return True

    def register(self, translator: Translator, key: str, document: bytes) -> bool:
        """Call `learn` for the source of this translator.

        Raises:
            MessageError: the dialect rejects the document or raises an unexpected error (INTERNAL). A document that
                another program wrote must not stop the process.
        """
        try:
            return self.learn(translator.source, key, document, translator.dialect)
        except CdcError:
            raise
        except Exception as error:
            raise translator.unexpected(error) from None

    def document(self, source: str, key: str) -> bytes | None:
        """Return a key's current document."""
        return self._documents.get((source, key))

    def lookup(self, source: str) -> Lookup:
        """Return the lookup function that is passed to a source's dialect."""
        return lambda key: self._metadata.get((source, key))

    def give_up(self, source: str, key: str) -> None:
        """Record that metadata did not arrive in time, so that later messages do not wait for it again."""
        remember(self._given_up, (source, key), None)

    def is_given_up(self, source: str, key: str) -> bool:
        return (source, key) in self._given_up

    def refuse(self, source: str, key: str, reason: MessageError) -> None:
        """Record that the document of this key cannot be read, so that no message asks for it again."""
        remember(self._refused, (source, key), reason)

    def refusal(self, source: str, key: str) -> MessageError | None:
        """Return why this key's document cannot be read, or None if it was not rejected."""
        return self._refused.get((source, key))


def remember(known: dict[Named, V], name: Named, value: V) -> None:
    """Store a fact about a key. If there are more than REMEMBERED keys, the oldest is forgotten. The next message that
    needs it then waits again.
    """
    known[name] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]


def _disagree(known: object, learned: object) -> bool:
    """Return whether two documents contradict each other. Documents without versions contradict each other if their
    bytes differ.
    """
    if isinstance(known, Versioned) and isinstance(learned, Versioned):
        return known.content != learned.content
    return True


def _newer(known: object, learned: object) -> bool:
    """Return whether the known document is newer than the new one. Without versions, the new one replaces it."""
    return isinstance(known, Versioned) and isinstance(learned, Versioned) and known.version > learned.version
