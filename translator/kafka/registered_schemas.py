"""Table schemas that Avro projections register, and the ids that the registry assigns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from translator.codecs.registered import UnregisteredSchema
from translator.errors import ErrorCode, MessageError
from translator.kafka.schema_registry import SchemaRefused, SchemaRegistry

T = TypeVar("T")

ASK_AGAIN = 10.0
"""Seconds after which a rejected schema is submitted again, because the registry's rules may change."""

_KEPT = 65_536
"""Maximum number of schemas whose ids are cached. A limit is needed because names in schemas come from messages."""


class RegisteredSchemas:
    """Ids by subject and schema. Codecs call `id_of`, which never waits. `register` asks the registry.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, registry: SchemaRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._ids: dict[tuple[str, str], int] = {}
        self._refused: dict[tuple[str, str], tuple[float, str]] = {}

    def id_of(self, subject: str, text: str) -> int:
        """Return a schema's id.

        Raises:
            UnregisteredSchema: the id is unknown, or the rejection is outdated. Call `register`.
            MessageError: the registry rejected the schema recently.
        """
        found = self._ids.get((subject, text))
        if found is not None:
            return found
        until, reason = self._refused.get((subject, text), (0.0, ""))
        if self._clock() < until:
            raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
        raise UnregisteredSchema(subject, text)

    def register(self, subject: str, text: str) -> None:
        """Query the registry, so that `id_of` knows the result.

        Raises:
            RetryableError: the registry does not respond, or cannot handle the request now.
            ConfigError: the registry denies access, or the settings do not point to a registry.
        """
        try:
            found = self._registry.schema_id(subject, text)
        except SchemaRefused as error:
            _keep(self._refused, (subject, text), (self._clock() + ASK_AGAIN, str(error)))
        else:
            self._refused.pop((subject, text), None)
            _keep(self._ids, (subject, text), found)


def _keep(known: dict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    if len(known) >= _KEPT:
        known.clear()
    known[key] = value
