"""The entry point to the native path, a Rust extension that translates common messages with the same result as the
plain path.

The extension is optional. If it was not built or is turned off, the plain path translates everything, with
byte-identical output (docs/native.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

SWITCH = "CDC_NATIVE"
"""The environment variable that turns off the native path if its value is `off`."""

SEAM = 17
"""The version of the interface between Python and the extension. Increase it here and in `src/lib.rs` whenever the
interface changes.
"""

_extension: ModuleType | None
try:
    from translator._native import rows as _extension
except ImportError as _error:
    _extension = None
    _missing = "not built (make setup builds it if cargo is installed)" if "rows" in str(_error) else str(_error)


def absence() -> str | None:
    """Return why the native path is not available, or None if it is."""
    if os.environ.get(SWITCH) == "off":
        return f"turned off by {SWITCH}"
    if _extension is None:
        return _missing
    return (
        None
        if getattr(_extension, "SEAM", None) == SEAM
        else "built from a different version of its source (make setup rebuilds it)"
    )


def way() -> str:
    """Return a readable description of the path in use: the extension's version, or why only the plain path is used."""
    reason = absence()
    return f"python ({reason})" if reason or _extension is None else f"native {_extension.VERSION}"
