"""Fixtures for the tests of benchmarks."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heap_of_its_own() -> Iterator[None]:
    """Collect garbage once: a benchmark does so before each round, and objects of thousands of other tests would slow
    it.
    """
    gc.freeze()
    yield
    gc.unfreeze()
