"""The codec benchmark runs on existing, consistent input. The tests do not check its figures."""

import pytest

from bench.steps.codec import BUDGET_COLUMNS, COLUMNS, budget, encoding
from bench.steps.shop_updates import SOURCES, feed
from translator.dialects import DIALECTS
from translator.message import Limits
from translator.translation.translate import Events, Translator


def _first_column(markdown: str) -> list[str]:
    return [line.split(" | ")[0].removeprefix("| ") for line in markdown.splitlines()[2:]]


def test_encoding() -> None:
    """The table has one row for each number of columns."""
    assert [str(columns) for columns in COLUMNS] == _first_column(encoding(rounds=1, count=2))


def test_budget() -> None:
    """The table has one row for each dialect."""
    assert sorted(DIALECTS) == _first_column(budget(rounds=1, count=2))


@pytest.mark.parametrize("name", SOURCES)
def test_messages(name: str) -> None:
    """In every dialect, each message is one update of the requested table."""
    dialect, messages = feed(name, BUDGET_COLUMNS, 20)
    translator = Translator("bench", dialect, Limits())
    assert 20 == len(messages)
    for message in messages:
        result = translator.translate(message)
        assert isinstance(result, Events)
        assert ["u"] == [event.op for event in result.events]


def test_both_images() -> None:
    """The encoded events have both images with all columns."""
    dialect, messages = feed("canal", 20, 5)
    translator = Translator("bench", dialect, Limits())
    for message in messages:
        result = translator.translate(message)
        assert isinstance(result, Events)
        (event,) = result.events
        assert (20, 20) == ((event.before or "").count('":'), (event.after or "").count('":'))
