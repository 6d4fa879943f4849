"""Translate given messages without brokers. A message may need metadata from a later message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from translator import dialects
from translator.codecs.json import JsonCodec
from translator.config.options import parse_options
from translator.errors import ConfigError, ContradictionError, FatalError, MessageError
from translator.message import DeclaredTable, Dialect, Limits, Message, Needs, Setup
from translator.resolution.resolve import UNBOUNDED, EventOutput, Outputs, OutputTopic, Resolver, Translation
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.partition_guards import Guards
from translator.translation.translate import Translator


class _Tables(msgspec.Struct, frozen=True):
    tables: tuple[DeclaredTable, ...] = ()


class FileTranslator:
    """The translator for one source, with its learned metadata and its guards. The output is JSON.

    Args:
        catalog: the translator's catalog.
        messages: all messages. They are searched once if a message needs metadata from another one.
        say: called with each finding of a guard.
        stops: a contradiction ends the translation, just as it would stop the source in the service. Otherwise, it is
            only a finding.
    """

    def __init__(
        self,
        translator: Translator,
        catalog: MetadataCatalog,
        messages: Sequence[Message],
        say: Callable[[str], None],
        *,
        stops: bool = True,
    ) -> None:
        self._say, self._stops = say, stops
        self._messages = messages
        self._learned_ahead = False
        self._catalog = catalog
        self._translator = translator
        self._guards = Guards(self._translator.dialect, say)
        nowhere = OutputTopic("standard output", 1, UNBOUNDED)
        self._resolver = Resolver(Outputs((EventOutput(JsonCodec(), nowhere),), nowhere, nowhere), self._catalog)

    @property
    def dialect(self) -> Dialect:
        """The source's dialect."""
        return self._translator.dialect

    def teach(self, key: str, text: bytes) -> None:
        """Learn a schema that no message contains.

        Raises:
            ConfigError: the dialect does not use schemas, or cannot read this one.
        """
        try:
            self._catalog.learn(self._translator.source, key, text, self._translator.dialect)
        except FatalError:
            raise ConfigError(
                f"--schemas is not allowed: dialect {self._translator.dialect.name} does not use a schema registry"
            ) from None
        except MessageError as error:
            raise ConfigError(
                f"--schemas: dialect {self._translator.dialect.name} cannot read the schema {key}: {error}"
            ) from None

    def translate(self, message: Message) -> Translation:
        """Resolve a message as the service does, but without waiting.

        Raises:
            ContradictionError: the message contradicts the options, and `stops` is set.
        """
        resolved = self._resolver.resolve(self._translator, message)
        if isinstance(resolved, Needs) and not self._learned_ahead:
            self._learned_ahead = True
            for other in self._messages:
                if learned := self._translator.lesson(other):
                    self._resolver.learn(self._translator, other, learned)
            resolved = self._resolver.resolve(self._translator, message)
        if isinstance(resolved, Needs):
            missing = self._translator.missing(message, resolved)
            resolved = Translation(missing, missing)
        for key in resolved.schemas:
            self._catalog.announced(key)  # no other processes have to be informed
        try:
            self._guards.inspect(message, resolved.read)
        except ContradictionError as error:
            if self._stops:
                raise
            self._say(str(error))
        return resolved


def of_dialect(
    dialect: str,
    options: Mapping[str, Any],
    source: str,
    messages: Sequence[Message],
    say: Callable[[str], None],
    limits: Limits | None = None,
    *,
    stops: bool = True,
) -> FileTranslator:
    """Return the translator for a source without a configuration.

    Args:
        options: the dialect's options, and `tables`.
        messages: see `FileTranslator`.
        say: see `FileTranslator`.
        stops: see `FileTranslator`.

    Raises:
        ConfigError: an option is invalid.
    """
    catalog = MetadataCatalog()
    own = {name: value for name, value in options.items() if name != "tables"}
    tables = parse_options(_Tables, {"tables": options.get("tables", [])}, dialect).tables
    bounds = limits or Limits()
    setup = Setup(source, bounds, tables, catalog.lookup(source))
    translator = Translator(source, dialects.build(dialect, setup, own), bounds)
    return FileTranslator(translator, catalog, messages, say, stops=stops)
