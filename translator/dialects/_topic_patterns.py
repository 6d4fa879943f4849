"""The `topics` option names the table of each topic, for writers whose messages do not contain it."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from translator.errors import ConfigError, quote
from translator.message import TableName

Topics: TypeAlias = dict[str, str] | str | None
"""The option as written in the configuration."""

Level = Literal["DB", "SCHEMA"]
"""The name level before the table, which depends on the dialect."""

_TOPICS_CACHED = 4096


class TopicTables:
    """A source's tables by topic.

    Args:
        owner: the dialect.

    Raises:
        ConfigError: the option is not written in any of the supported ways.
    """

    def __init__(self, owner: str, level: Level, given: Mapping[str, str] | str | None) -> None:
        self._owner = owner
        self._level = level
        self._patterns = self._parsed(given)
        self.declared = bool(self._patterns)
        self.find = lru_cache(_TOPICS_CACHED)(self._find)

    def _find(self, topic: str) -> TableName | None:
        """Return the table for the first matching pattern. Patterns support `*` and `?`."""
        return next((name for pattern, name in self._patterns if fnmatch.fnmatchcase(topic, pattern)), None)

    def _parsed(self, given: Mapping[str, str] | str | None) -> tuple[tuple[str, TableName], ...]:
        if given is None:
            return ()
        if isinstance(given, str):
            pairs = [self._pair(entry) for entry in given.split(",")] if "=" in given else [("*", given)]
        else:
            pairs = list(given.items())
        return tuple((pattern.strip().replace("[", "[[]"), self._name(name)) for pattern, name in pairs)

    def _pair(self, entry: str) -> tuple[str, str]:
        pattern, equals, name = entry.partition("=")
        if not equals or not pattern.strip():
            raise self._wrong(f"{quote(entry)} is not in the form PATTERN={self._level}.TABLE")
        return pattern, name

    def _name(self, text: str) -> TableName:
        parts = text.strip().split(".")
        if len(parts) > 2 or not all(parts):
            raise self._wrong(f"{quote(text)} is not in the form {self._level}.TABLE or TABLE")
        above = parts[0] if len(parts) == 2 else None
        return TableName(above, None, parts[-1]) if self._level == "DB" else TableName(None, above, parts[-1])

    def _wrong(self, what: str) -> ConfigError:
        name = f"{self._level}.TABLE"
        allowed = f"expected {name} for every topic, a comma-separated list of PATTERN={name}, or a mapping"
        return ConfigError(f"{self._owner}: topics: {what}; {allowed}")
