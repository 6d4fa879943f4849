"""Let a plug-in's dialect process the messages of a case, contained as in the service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from translator.config.options import parse_options
from translator.conformance.cases import Case
from translator.conformance.package import Package
from translator.conformance.score import Failed
from translator.dialects import DialectPlugin, _time_limit
from translator.dialects._contained import Contained
from translator.message import Limits, Message, Setup
from translator.operations.file_translator import FileTranslator
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Translator

SOURCE = "conformance"


class Trial:
    """A new dialect for a case.

    Raises:
        ConfigError: the plug-in rejects the case's options, or cannot be built.
    """

    def __init__(self, plugin: DialectPlugin, case: Case) -> None:
        self._case = case.name
        limits, catalog = Limits(), MetadataCatalog()
        setup = Setup(SOURCE, limits, case.tables, catalog.lookup(SOURCE))
        self.dialect = Contained(plugin, setup, parse_options(plugin.options, case.options, plugin.name))
        translator = Translator(SOURCE, self.dialect, limits)
        self._files = FileTranslator(translator, catalog, case.messages, lambda text: None)

    def translate(self, message: Message) -> Translation:
        """Return the result for a message. If it needs metadata, it is searched for in the other messages of the case.

        Raises:
            Failed: the previous message took too long. The next messages would probably take just as long.
        """
        if self.dialect.overdue:
            raise Failed(
                f"case {self._case}: within {_time_limit.SECONDS} s, the plug-in returned no result for a message or "
                "for a variant of it",
                "Correct this first: the property was not tested any further",
            )
        return self._files.translate(message)

    def events(self, message: Message) -> list[ChangeEvent] | None:
        """Return the message's events, or None if it has none."""
        translation = self.translate(message)
        return None if translation.events is None else list(translation.events.events)

    def rejects(self, message: Message) -> bool:
        """Return whether the message becomes a dead letter."""
        return isinstance(self.translate(message).outcome, DeadLetter)


class Subject(Struct, frozen=True):
    """A plug-in and the cases that test it.

    Args:
        carriers: what `row_values.each_carrier` found, by message name.
    """

    package: Package
    plugin: DialectPlugin
    cases: Sequence[Case]
    carriers: dict[str, Any] = {}

    def messages(self) -> Iterator[tuple[str, Trial, Message]]:
        """Return each message together with its name. Earlier messages in the same case have already been
        translated.
        """
        for case in self.cases:
            trial = Trial(self.plugin, case)
            for number, message in enumerate(case.messages, 1):
                trial.translate(message)
                yield f"case {case.name}, message {number}", trial, message


def with_value(message: Message, document: Any) -> Message:
    """Return a message with a JSON document as its value."""
    return msgspec.structs.replace(message, value=json.dumps(document).encode())
