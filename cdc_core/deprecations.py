"""Settings that a later release removes (docs/stability.md). The `check` commands of both programs warn about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel


class Deprecation(NamedTuple):
    """An announced removal.

    Args:
        since: the first release that warns.
        removed_in: the release that rejects the setting. It is at least two minor releases later.
        instead: what to do, as a full sentence.
    """

    since: str
    removed_in: str
    instead: str


# Each key is a setting's path without list indexes, such as `sources.topics`.
TRANSLATOR: Mapping[str, Deprecation] = {}
SPARK_SINK: Mapping[str, Deprecation] = {}


def deprecated_settings(settings: BaseModel, known: Mapping[str, Deprecation]) -> list[str]:
    """Return a warning for each deprecated setting that the configuration file contains."""
    return [
        f"`{path}` is deprecated since {found.since}, and {found.removed_in} rejects it. {found.instead}"
        for path, found in known.items()
        if any(_given(settings, path.split(".")))
    ]


def _given(node: Any, path: Sequence[str]) -> Iterator[bool]:
    """Yield True for each place where the file contains the setting."""
    if not path:
        yield True
    elif isinstance(node, BaseModel):
        if path[0] in node.model_fields_set:
            yield from _given(getattr(node, path[0]), path[1:])
    elif isinstance(node, Mapping):
        if path[0] in node:
            yield from _given(node[path[0]], path[1:])
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _given(item, path)
