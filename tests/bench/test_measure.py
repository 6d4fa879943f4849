"""The rules of measuring: turns, fresh items, and tables that Markdown reads."""

from collections.abc import Callable, Iterator
from itertools import count

from bench.measure import best_times, rate, table


def test_turns() -> None:
    """Contestants take turns forth and back, each with items that nobody had before."""
    calls: list[tuple[str, int]] = []
    fresh: Iterator[int] = count()

    def named(name: str) -> Callable[[int], None]:
        return lambda item: calls.append((name, item))

    best = best_times({"a": named("a"), "b": named("b")}, lambda: [next(fresh), next(fresh)], rounds=2)
    assert ["a", "a", "b", "b", "b", "b", "a", "a"] == [name for name, _ in calls]
    assert list(range(8)) == [item for _, item in calls]
    assert ["a", "b"] == list(best)


def test_table() -> None:
    """The first column is text, the others are numbers."""
    assert "| what | us |\n| --- | ---: |\n| a | 1.5 |" == table(("what", "us"), [("a", "1.5")])


def test_rate() -> None:
    """Eight microseconds each are 125 thousand a second."""
    assert "125 k/s" == rate(8.0)
