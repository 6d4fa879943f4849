"""An object store for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dev.servers.object_store import VARIABLE, ObjectStore


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """A running store shared by all tests. Use your own folders, and never stop it."""
    with new_object_store() as running:
        yield running


def new_object_store() -> ObjectStore:
    """A store that is not started. If its program is missing, the test fails unless the environment gives a reason."""
    if os.environ.get(VARIABLE) == "none":
        pytest.skip(f"{VARIABLE}=none: the object store could not be built on this machine; S3 is NOT SHOWN")
    return ObjectStore()
