"""The sizes of the property tests."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sizes import LEAST, PROFILES, examples

TESTS = Path(__file__).parent


@pytest.mark.parametrize("weight", [0.001, 0.25, 1, 7])
def test_weight(weight: float) -> None:
    """A weight scales the number of examples of the selected profile, and the result is never close to zero."""
    share = settings.default.max_examples * weight
    assert max(LEAST, share) <= examples(weight).max_examples < max(LEAST, share) + 1


def test_every_profile_is_known() -> None:
    """Every profile sets a number of examples and no deadline."""
    for name, count in PROFILES.items():
        profile = settings.get_profile(name)
        assert (count, None) == (profile.max_examples, profile.deadline)


def test_no_file_has_a_number_of_its_own() -> None:
    """Tests change their number of examples through a weight only. The profile is the single place for the number."""
    own = re.compile(r"max_examples\s*=")
    assert [TESTS / "sizes.py"] == [path for path in TESTS.rglob("*.py") if own.search(path.read_text())]
