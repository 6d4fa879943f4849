"""Names of topics made from names of tables: one topic for each table, or each source, of a projection.

Two tables never get one topic by accident. Levels of a name are joined by points, and what a level must not have in the
name of a topic is replaced; a name that was changed, or looks as if it were, ends with a digest of the levels.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from msgspec import Struct

MAX_LENGTH = 249
"""Characters of the name of a topic."""

_MAX_PREFIX = 180
_TEMPLATE = re.compile(r"(?P<prefix>[A-Za-z0-9._-]*[._-])(?P<levels>\{source\}\.\{table\}|\{source\}|\{table\})")
_PLAIN_LEVEL = re.compile(r"[A-Za-z0-9_-]+")
_NOT_OF_TOPICS = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_LENGTH = 12
_DIGEST = re.compile(r"-[0-9a-f]{12}$")


class TopicTemplate(Struct, frozen=True):
    """A prefix, then the name of the source, the name of the table, or both."""

    text: str
    prefix: str
    """All topics that begin with it are of the template."""
    by_source: bool
    by_table: bool

    @classmethod
    def parse(cls, text: str) -> TopicTemplate:
        """Return the template of a text.

        Raises:
            ValueError: it is none.
        """
        found = _TEMPLATE.fullmatch(text)
        if found is None or len(found["prefix"]) > _MAX_PREFIX or not found["prefix"].strip("."):
            raise ValueError(
                f"no template of a topic: a prefix of letters, digits, points, - and _ that ends with one of the last "
                f"three, of at most {_MAX_PREFIX} characters; then {{source}}.{{table}}, {{table}} or {{source}}"
            )
        return cls(text, found["prefix"], "{source}" in found["levels"], "{table}" in found["levels"])

    def topic(self, source: str, db: str | None, schema: str | None, table: str | None) -> str:
        """Return the topic of a table."""
        named = (db, schema, table) if self.by_table else ()
        of_source = (source,) if self.by_source else ()
        levels = [*of_source, *(level for level in named if level)]
        name = self.prefix + ".".join(levels)
        plain = levels and all(map(_PLAIN_LEVEL.fullmatch, levels)) and not _DIGEST.search(name)
        if plain and len(name) <= MAX_LENGTH:
            return name
        return self._marked(levels, [*of_source, *named])

    def _marked(self, levels: Sequence[str], named: Sequence[str | None]) -> str:
        # Half a surrogate pair may stand in a name that JSON brought; `json` writes it as an escape.
        digest = hashlib.sha256(json.dumps(named).encode()).hexdigest()[:_DIGEST_LENGTH]
        legal = self.prefix + ".".join(_NOT_OF_TOPICS.sub("_", level) for level in levels)
        return f"{legal[: MAX_LENGTH - 1 - _DIGEST_LENGTH]}-{digest}"


def template_of(topic: str) -> TopicTemplate | None:
    """Return the template that the setting `topic` is; None for a name.

    Raises:
        ValueError: it is neither.
    """
    return TopicTemplate.parse(topic) if "{" in topic or "}" in topic else None
