"""Helm for the tests of this folder, which `make chart-check` runs."""

from __future__ import annotations

import pytest

from dev.release.charts import HELM


@pytest.fixture(scope="session", autouse=True)
def helm() -> None:
    """Helm. If it is missing, the tests fail and explain how to build it."""
    HELM.built()
