"""The plug-in has all properties of a dialect, as `translator dialect test` reports them."""

from pathlib import Path

from translator.conformance import scorecard


def test_the_scorecard() -> None:
    card = scorecard(Path(__file__).parents[1])
    assert card.complete, str(card)
