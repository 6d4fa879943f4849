"""The door to the native path: an extension in Rust that does for common messages what the plain way does for all.

It is optional. Where it was not built, or is turned off, the plain way translates everything, to the same bytes
(docs/native.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

SWITCH = "CDC_NATIVE"
"""The environment variable that turns it off with `off`."""

SEAM = 7
"""The number of what is said between Python and the extension; it changes with it, in `src/lib.rs` too."""

_extension: ModuleType | None
try:
    from translator._native import rows as _extension
except ImportError as _error:
    _extension = None
    _missing = "not built (make setup builds it where cargo is found)" if "rows" in str(_error) else str(_error)


def absence() -> str | None:
    """Return why there is no native path; None where there is one."""
    if os.environ.get(SWITCH) == "off":
        return f"turned off by {SWITCH}"
    if _extension is None:
        return _missing
    return (
        None
        if getattr(_extension, "SEAM", None) == SEAM
        else "built of another state of its source (make setup builds it anew)"
    )


def way() -> str:
    """Return which way translates, for people: the version of the extension, or why the plain way does it alone."""
    reason = absence()
    return f"python ({reason})" if reason or _extension is None else f"native {_extension.VERSION}"
