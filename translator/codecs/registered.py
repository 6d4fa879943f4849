"""Give codecs the ids of Avro schemas that become known only when their tables appear.

A codec never waits. If an id is not known yet, the codec reports which schema it needs. The caller then gets the id
from the registry and encodes the message again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from cdc_core.envelope import ChangeEvent

SchemaIds: TypeAlias = Callable[[str, str], int]
"""Returns the id for a subject and a schema text. Raises UnregisteredSchema, or MessageError if the registry rejected
the schema.
"""

TopicOf: TypeAlias = Callable[[ChangeEvent], str]
"""Returns the topic for an event's records. The subject is named after the topic."""


class UnregisteredSchema(Exception):
    """The schema's id is not known yet. The caller asks the registry for it and encodes the message again."""

    def __init__(self, subject: str, text: str) -> None:
        super().__init__(f"the schema id for subject {subject} is unknown")
        self.subject = subject
        self.text = text


def unknown_id(subject: str, text: str) -> int:
    """Raise UnregisteredSchema. For codecs that encode nothing, or that run before anyone has asked the registry."""
    raise UnregisteredSchema(subject, text)


class TableSchemas(Struct, frozen=True):
    """Gives a codec the ids of table schemas."""

    ids: SchemaIds
    topic_of: TopicOf


def avro_name(name: str) -> str:
    """Return a valid Avro name. Any character other than an ASCII letter, a digit or an underscore becomes an
    underscore.
    """
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{legal}" if not legal or legal[0].isdigit() else legal
