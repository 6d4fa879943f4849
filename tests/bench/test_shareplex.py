"""The benchmark of SharePlex runs: what it measures is translated. What it finds is no matter of a test."""

from bench.steps.shareplex import SHAPES, shapes


def test_shapes() -> None:
    """A line for each shape; a message that is refused would stop it."""
    lines = [line.split(" | ")[0] for line in shapes(rounds=1, count=200).splitlines()[2:]]
    assert [f"| {name}" for name in SHAPES] == lines
