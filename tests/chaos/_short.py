"""Which cases of the short form run where."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.chaos.cases import SHORT

EVERY_TIME = ("short-kills",)
"""Of the short form, what every `make test` runs; the others take minutes on two processors."""


def parameters(brokers: int) -> list[Any]:
    """The cases of the short form with so many brokers."""
    rare = pytest.mark.skipif(
        "CHAOS" not in os.environ, reason="takes minutes: CHAOS=1 make test, or make chaos CHAOS_ARGS=<case>"
    )
    return [
        pytest.param(case.name, marks=() if case.name in EVERY_TIME else rare)
        for case in SHORT
        if case.brokers == brokers
    ]
