"""The dialect: what arrives on a topic of Qlik Replicate, decided in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from translator.dialects._tables import DeclaredTables
from translator.dialects.qlik.frame import DATA, METADATA, Frame, open_frame
from translator.dialects.qlik.headers import read_headers
from translator.dialects.qlik.metadata import Metadata, compile_document, encode_document, read_document
from translator.dialects.qlik.rows import read_change, read_sections
from translator.dialects.qlik.tables import Table, UntypedTables
from translator.message import Changes, Learned, Message, Needs, Outcome, Setup, Skip
from translator.options import parse_options


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a Qlik source (docs/dialects/qlik.md)."""

    topics: dict[str, str] | str | None = None
    """Table of each topic, for messages without metadata."""
    untyped: Literal["wait", "translate"] = "wait"
    """A message that names metadata waits for it, or is translated without types whether the metadata is known or
    not: an event must not depend on what happened to be learned before it (design section 1, promise 3)."""


class Qlik:
    """Qlik Replicate on Kafka: data messages become row changes, metadata messages are learned."""

    name = "qlik"

    def __init__(self, setup: Setup, options: Mapping[str, Any]) -> None:
        given = parse_options(Options, options, self.name)
        self._setup = setup
        self._wait = given.untyped == "wait"
        self._untyped = UntypedTables(setup, given.topics)
        self._declared = DeclaredTables(setup.source, setup.tables)
        self._decoders: Mapping[str, Callable[[Frame, Message], Outcome]] = {
            DATA: self._decode_data,
            METADATA: self._decode_metadata,
        }

    def decode(self, message: Message) -> Outcome:
        """The outcome of one record.

        Raises:
            MessageError: the record becomes a dead letter.
        """
        if not message.value:
            return Skip("tombstone")
        frame = open_frame(message.value, self._setup.limits)
        return self._decoders[frame.type](frame, message)

    def learn(self, key: str, document: bytes) -> Metadata:
        """The metadata in a document that `decode` gave out."""
        return compile_document(document, self._setup.source, self._declared)

    def _decode_metadata(self, frame: Frame, message: Message) -> Outcome:
        document = read_document(frame, self._setup.limits)
        return Learned(document.schema_id, encode_document(document))

    def _decode_data(self, frame: Frame, message: Message) -> Outcome:
        # Everything that can be read without metadata is read first: a broken message does not wait.
        headers = read_headers(frame.body, frame.path)
        sections = read_sections(frame, headers.op, self._setup.limits)
        if frame.schema_id is not None and self._wait:
            table = self._learned(frame.schema_id)
            if table is None:
                return Needs(frame.schema_id)
        else:
            table = self._untyped.find(message.topic, frame)
        return Changes([read_change(frame, headers, sections, table, self._setup.limits)])

    def _learned(self, schema_id: str) -> Table | None:
        found = self._setup.lookup(schema_id)
        if found is None:
            return None
        if not isinstance(found, Metadata):
            raise TypeError(f"the look-up returned {type(found).__name__}, not what learn() made")
        return found.table
