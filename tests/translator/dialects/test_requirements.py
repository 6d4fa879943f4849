"""Every requirement of a dialect has a test that shows it, and the page lists them as the markers say."""

from __future__ import annotations

from tests.translator.dialects import requirements


def test_every_requirement_is_shown() -> None:
    """One that nothing shows is a promise without a test."""
    assert [] == sorted(requirements.identified().keys() - requirements.shown().keys())


def test_every_marker_names_a_requirement() -> None:
    """A number that is none, or a dialect or group that was renamed."""
    assert [] == sorted(requirements.shown().keys() - requirements.identified().keys())


def test_the_page_is_what_the_markers_say() -> None:
    """`python -m tests.translator.dialects.requirements` writes it."""
    assert requirements.page() == requirements.PAGE.read_text(encoding="utf-8")
