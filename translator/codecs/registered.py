"""The questions of codecs to a schema registry: ids of Avro schemas that are known only when their table is met.

A codec waits for nothing. Where the id is not known yet it says which schema is wanted, and whoever runs the codec gets
the id and begins the message anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from cdc_core.envelope import ChangeEvent

SchemaIds: TypeAlias = Callable[[str, str], int]
"""Subject and text of a schema -> its id. Raises UnregisteredSchema, or MessageError when the registry refused it."""

TopicOf: TypeAlias = Callable[[ChangeEvent], str]
"""Event -> the topic of its records, of which the subject has its name."""


class UnregisteredSchema(Exception):
    """The id of a schema is not known: ask the registry, and encode the message again."""

    def __init__(self, subject: str, text: str) -> None:
        super().__init__(f"the id of a schema of subject {subject} is not known")
        self.subject = subject
        self.text = text


def unknown_id(subject: str, text: str) -> int:
    """Know no id: where codecs are built and nothing is encoded, or nobody was asked yet."""
    raise UnregisteredSchema(subject, text)


class TableSchemas(Struct, frozen=True):
    """The way of a codec to the ids of the schemas of tables."""

    ids: SchemaIds
    topic_of: TopicOf


def avro_name(name: str) -> str:
    """Return a name as Avro allows it: what is no letter, digit or underscore of ASCII becomes an underscore."""
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{legal}" if not legal or legal[0].isdigit() else legal
