"""Compare the native path with the plain path."""

import pytest

from translator import _native

needs_extension = pytest.mark.skipif(
    _native.absence() is not None,
    reason=f"the extension is not there ({_native.absence()}); cargo builds it: python -m dev.native",
)
