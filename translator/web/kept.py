"""Cache results, and share them among everyone who reads a page."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Found = TypeVar("Found")


class Kept(Generic[Found]):
    """A result that concurrent requests compute only once, and that is cached for a while."""

    def __init__(self, ask: Callable[[], Found], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._lock = threading.Lock()
        self._until = 0.0
        self._found: Found | None = None

    def get(self) -> Found:
        with self._lock:
            if self._found is None or time.monotonic() > self._until:
                self._found = self._ask()
                self._until = time.monotonic() + self._seconds
            return self._found

    def forget(self) -> None:
        with self._lock:
            self._found = None
