"""The Canal benchmark runs and translates what it measures. The tests do not check its figures."""

from bench.steps.canal import ROWS_A_MESSAGE, SPELLINGS, profiles


def test_profiles() -> None:
    """The benchmark prints a line for each profile and size. A rejected message would stop it."""
    lines = [line.split(" | ")[:2] for line in profiles(rounds=1, rows=200).splitlines()[2:]]
    assert [[f"| {profile}", str(size)] for profile in SPELLINGS for size in ROWS_A_MESSAGE] == lines
