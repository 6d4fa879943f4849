"""An index from the boxes of a format page to the tests that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from tests.translator.dialects.case import CASES, EXPECTED

Tests: TypeAlias = Sequence[str]
"""`module::function` or `module::Class::function`, modules below tests.translator; a case of test_cases in brackets."""


def boxes(groups: Mapping[str, Mapping[str, Tests]]) -> dict[str, Tests]:
    """Every box by its group and its words, in the order of the page, and the tests that show it."""
    return {f"{group}: {box}": tests for group, found in groups.items() for box, tests in found.items()}


def exists(test: str) -> bool:
    """Whether pytest would find it, and the case in brackets, if any, has its expected outcome."""
    name, _, case = test.rstrip("]").partition("[")
    module, *path = name.split("::")
    found: Any = import_module(f"tests.translator.{module}")
    for part in path:
        found = getattr(found, part, None)
    return path[-1].startswith("test_") and callable(found) and (not case or (CASES / case / EXPECTED).is_file())
