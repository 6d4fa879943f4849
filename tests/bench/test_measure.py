"""The rules of measurement: alternating turns, fresh items, and valid Markdown tables."""

from collections.abc import Callable, Iterator
from itertools import count

from bench.measure import best_times, rate, table


def test_turns() -> None:
    """Contestants alternate in forward and reverse order, and no item is used twice."""
    calls: list[tuple[str, int]] = []
    fresh: Iterator[int] = count()

    def named(name: str) -> Callable[[int], None]:
        return lambda item: calls.append((name, item))

    best = best_times({"a": named("a"), "b": named("b")}, lambda: [next(fresh), next(fresh)], rounds=2)
    assert ["a", "a", "b", "b", "b", "b", "a", "a"] == [name for name, _ in calls]
    assert list(range(8)) == [item for _, item in calls]
    assert ["a", "b"] == list(best)


def test_table() -> None:
    """The first column is text, and the others are numbers."""
    assert "| what | us |\n| --- | ---: |\n| a | 1.5 |" == table(("what", "us"), [("a", "1.5")])


def test_rate() -> None:
    """Eight microseconds each is 125 thousand per second."""
    assert "125 k/s" == rate(8.0)
