"""The benchmark of codecs runs: what it measures exists and agrees. What it finds is no matter of a test."""

import pytest

from bench.steps.codec import BUDGET_COLUMNS, COLUMNS, budget, encoding
from bench.steps.shop_updates import SOURCES, feed
from translator.dialects import DIALECTS
from translator.message import Limits
from translator.translation.translate import Events, Translator


def _first_column(markdown: str) -> list[str]:
    return [line.split(" | ")[0].removeprefix("| ") for line in markdown.splitlines()[2:]]


def test_encoding() -> None:
    """One row for each number of columns."""
    assert [str(columns) for columns in COLUMNS] == _first_column(encoding(rounds=1, count=2))


def test_budget() -> None:
    """One row for each dialect that there is."""
    assert sorted(DIALECTS) == _first_column(budget(rounds=1, count=2))


@pytest.mark.parametrize("name", SOURCES)
def test_messages(name: str) -> None:
    """Every message is one update of the wanted table, in every dialect."""
    dialect, messages = feed(name, BUDGET_COLUMNS, 20)
    translator = Translator("bench", dialect, Limits())
    assert 20 == len(messages)
    for message in messages:
        result = translator.translate(message)
        assert isinstance(result, Events)
        assert ["u"] == [event.op for event in result.events]


def test_both_images() -> None:
    """What is encoded has both images, with all columns."""
    dialect, messages = feed("canal", 20, 5)
    translator = Translator("bench", dialect, Limits())
    for message in messages:
        result = translator.translate(message)
        assert isinstance(result, Events)
        (event,) = result.events
        assert (20, 20) == ((event.before or "").count('":'), (event.after or "").count('":'))
