"""Derive the names of topics from the names of tables. A projection writes one topic per table or per source.

No two tables share a topic by accident. Name levels are joined with dots, and characters that a topic name cannot
contain are replaced. If a topic name was changed, or looks as if it was, it ends with a digest of the levels.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from msgspec import Struct

MAX_LENGTH = 249
"""Maximum length of a topic name."""

_MAX_PREFIX = 180
_TEMPLATE = re.compile(r"(?P<prefix>[A-Za-z0-9._-]*[._-])(?P<levels>\{source\}\.\{table\}|\{source\}|\{table\})")
_PLAIN_LEVEL = re.compile(r"[A-Za-z0-9_-]+")
_NOT_OF_TOPICS = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_LENGTH = 12
_DIGEST = re.compile(r"-[0-9a-f]{12}$")


class TopicTemplate(Struct, frozen=True):
    """A prefix followed by the source name, the table name, or both."""

    text: str
    prefix: str
    """The prefix. All topics that begin with it belong to the template."""
    by_source: bool
    by_table: bool

    @classmethod
    def parse(cls, text: str) -> TopicTemplate:
        """Parse a template.

        Raises:
            ValueError: the text is not a template.
        """
        found = _TEMPLATE.fullmatch(text)
        if found is None or len(found["prefix"]) > _MAX_PREFIX or not found["prefix"].strip("."):
            raise ValueError(
                "not a topic template: expected a prefix followed by {source}.{table}, {table} or {source}. The "
                "prefix consists of letters, digits, points, - and _, ends with a point, - or _, and has at most "
                f"{_MAX_PREFIX} characters"
            )
        return cls(text, found["prefix"], "{source}" in found["levels"], "{table}" in found["levels"])

    def topic(self, source: str, db: str | None, schema: str | None, table: str | None) -> str:
        """Return a table's topic."""
        named = (db, schema, table) if self.by_table else ()
        of_source = (source,) if self.by_source else ()
        levels = [*of_source, *(level for level in named if level)]
        name = self.prefix + ".".join(levels)
        plain = levels and all(map(_PLAIN_LEVEL.fullmatch, levels)) and not _DIGEST.search(name)
        if plain and len(name) <= MAX_LENGTH:
            return name
        return self._marked(levels, [*of_source, *named])

    def _marked(self, levels: Sequence[str], named: Sequence[str | None]) -> str:
        # A name from JSON can contain half of a surrogate pair, which `json` writes as an escape.
        digest = hashlib.sha256(json.dumps(named).encode()).hexdigest()[:_DIGEST_LENGTH]
        legal = self.prefix + ".".join(_NOT_OF_TOPICS.sub("_", level) for level in levels)
        return f"{legal[: MAX_LENGTH - 1 - _DIGEST_LENGTH]}-{digest}"


def template_of(topic: str) -> TopicTemplate | None:
    """Return the template in the `topic` setting, or None for a plain name.

    Raises:
        ValueError: the setting is neither a template nor a name.
    """
    return TopicTemplate.parse(topic) if "{" in topic or "}" in topic else None
