"""The benchmark of Canal runs: what it measures is translated. What it finds is no matter of a test."""

from bench.steps.canal import ROWS_A_MESSAGE, SPELLINGS, profiles


def test_profiles() -> None:
    """A line for each profile and size; a message that is refused would stop it."""
    lines = [line.split(" | ")[:2] for line in profiles(rounds=1, rows=200).splitlines()[2:]]
    assert [[f"| {profile}", str(size)] for profile in SPELLINGS for size in ROWS_A_MESSAGE] == lines
