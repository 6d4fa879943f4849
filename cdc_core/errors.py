"""The errors that both programs know. The class is the decision that the caller takes.

CdcError
  FatalError         going on would lose or invent something: stop with exit code 1, nothing is acknowledged
    ConfigError      the operator must change the configuration or the call: exit code 2
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CdcError(Exception):
    """Base of every error that this product raises on purpose."""


class FatalError(CdcError):
    """Going on would lose or invent something. The process stops with exit code 1; nothing is acknowledged."""


class ConfigError(FatalError):
    """The configuration or the command line is wrong; exit code 2."""


def quote(value: object, limit: int = 40) -> str:
    """A name or keyword from a message, safe to print: bounded, control characters escaped. Not for row data."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[:limit] + "…")


_COMPARED = 100
"""Characters of a value that are held against the names: it may have millions, and memory goes by their number."""


def unknown(what: str, value: object, allowed: Iterable[str]) -> str:
    """The sentence for a value outside a closed list, with the nearest allowed name when one is near."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(value)[:_COMPARED], names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {quote(value)}{hint}; allowed: {', '.join(names) or 'none'}"
