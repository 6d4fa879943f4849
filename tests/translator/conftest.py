"""Fixtures for several packages of tests."""

import pytest

from translator.resolution import resolve


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split a small batch into several runs of the native path."""
    monkeypatch.setattr(resolve, "NATIVE_RUN", 32)
