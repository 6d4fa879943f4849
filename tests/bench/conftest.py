"""Fixtures for the tests of benchmarks."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heap_of_its_own() -> Iterator[None]:
    """Freeze the objects of earlier tests, so that the garbage collection before each benchmark round skips them."""
    gc.freeze()
    yield
    gc.unfreeze()
