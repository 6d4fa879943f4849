"""Errors shared by both programs.

How a caller reacts depends on the class of the error:

    CdcError
      FatalError         continuing would lose or invent data: stop with exit code 1, acknowledge nothing
        ConfigError      the operator must change the configuration or the call: exit code 2
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CdcError(Exception):
    """Base class of every error that this product raises on purpose."""


class FatalError(CdcError):
    """To continue would lose or invent data. The process then stops with exit code 1 and acknowledges nothing."""


class ConfigError(FatalError):
    """The configuration or the command line is invalid; exit code 2."""


def quote(value: object, limit: int = 40) -> str:
    """Quote a name or a keyword so that it is safe to print: shortened, with control characters escaped. Do not use
    this for row data.
    """
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= limit else text[:limit] + "…")


_COMPARED = 100
"""The maximum length of a value that is compared with the known names. Longer values get no suggestion. A value may
have millions of characters, and the comparison needs memory for each of them.
"""


def unknown(what: str, value: object, allowed: Iterable[str]) -> str:
    """Return the text of the error about a value that is not in a closed list. If an allowed name is similar, the text
    suggests it.
    """
    names = sorted(allowed)
    near = difflib.get_close_matches(str(value)[:_COMPARED], names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {quote(value)}{hint}; allowed: {', '.join(names) or 'none'}"
