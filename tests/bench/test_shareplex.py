"""The SharePlex benchmark runs and translates what it measures. The tests do not check its figures."""

from bench.steps.shareplex import SHAPES, shapes


def test_shapes() -> None:
    """The benchmark prints a line for each shape. A rejected message would stop it."""
    lines = [line.split(" | ")[0] for line in shapes(rounds=1, count=200).splitlines()[2:]]
    assert [f"| {name}" for name in SHAPES] == lines
