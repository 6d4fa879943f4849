"""Build a built-in dialect from options as they are in a configuration, with its own class as the type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from translator.dialects import build
from translator.message import Dialect, Setup

D = TypeVar("D", bound=Dialect)


def made(kind: type[D], setup: Setup, options: Mapping[str, Any]) -> D:
    """Return the dialect for a source.

    Raises:
        ConfigError: an option is invalid.
    """
    built = build(kind.name, setup, options)
    assert isinstance(built, kind)
    return built
