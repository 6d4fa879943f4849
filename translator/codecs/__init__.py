"""Envelope -> bytes. A codec is `encode(event) -> list of Record`; one explicit dictionary names them.

"Codec" here is the wire form of an event, not Python's `codecs` module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.envelope import ChangeEvent


class Codec(Protocol):
    """One wire form of the envelope."""

    name: str

    def encode(self, event: ChangeEvent) -> list[Record]: ...


CODECS: Mapping[str, Callable[[], Codec]] = {"avro": AvroCodec, "json": JsonCodec}
