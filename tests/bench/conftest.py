"""What tests of benchmarks share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heap_of_its_own() -> Iterator[None]:
    """A benchmark collects garbage before each round: what thousands of other tests left in memory is no part of it."""
    gc.freeze()
    yield
    gc.unfreeze()
