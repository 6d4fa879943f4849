"""The benchmark of projections writes every form, on the native path if it was built."""

from bench.steps.projections import projections, report
from translator._native import absence


def test_projections() -> None:
    """The benchmark prints a line for each projection. A rejected message would stop it."""
    lines = [[cell.strip() for cell in line.split("|")[1:4]] for line in report(200, 1).splitlines()[2:]]
    assert [*projections()] == [name for name, _, _ in lines]
    assert {"plain" if absence() else "native"} == {way for _, _, way in lines}
