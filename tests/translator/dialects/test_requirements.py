"""Every requirement of a dialect has a test, and the page lists them according to the markers."""

from __future__ import annotations

from tests.translator.dialects import requirements


def test_every_requirement_is_shown() -> None:
    """A requirement without a test is an empty promise."""
    assert [] == sorted(requirements.identified().keys() - requirements.shown().keys())


def test_every_marker_names_a_requirement() -> None:
    """No marker has a wrong number, or the old name of a dialect or group."""
    assert [] == sorted(requirements.shown().keys() - requirements.identified().keys())


def test_the_page_is_what_the_markers_say() -> None:
    """The page is the one that `python -m tests.translator.dialects.requirements` writes."""
    assert requirements.page() == requirements.PAGE.read_text(encoding="utf-8")
