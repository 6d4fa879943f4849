"""A mutant changes one expression and nothing else, and a test that asserts nothing lets it survive."""

import ast
from pathlib import Path

import pytest

from dev.mutants import __main__ as mutants
from dev.mutants.mutations import mutants_of

PYTHON = b'''def f(a, b):
    """A docstring: 1 < 2."""
    if a < b and not a:  # 3 == 4
        return a + 1
    return "\xc3\xa9" if a is None else True
'''
RUST = b"""fn f(a: u8) -> bool {
    // 1 < 2
    a <= 7 && a != 3
}
#[cfg(test)]
mod tests { const A: bool = 1 < 2; }
"""


def test_python() -> None:
    found = {(mutant.old, mutant.new): mutant.apply(PYTHON).decode() for mutant in mutants_of("a.py", PYTHON)}
    changes = {("<", "<="), ("and", "or"), ("not ", ""), ("+", "-"), ("1", "2"), ("is", "is not"), ("True", "False")}
    assert changes == found.keys()
    assert "if a < b or not a:  # 3" in found["and", "or"]
    assert "if a is not None else True" in found["is", "is not"]
    for changed in found.values():
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(PYTHON))


def test_rust() -> None:
    """Comments and the tests at the end of a file stay."""
    found = [mutant.apply(RUST).decode() for mutant in mutants_of("a.rs", RUST)]
    lines = [changed.splitlines()[2].strip() for changed in found]
    assert ["a < 7 && a != 3", "a <= 7 || a != 3", "a <= 7 && a == 3"] == lines


@pytest.mark.parametrize(("asserted", "caught"), [("f(1, 2) and not f(2, 2)", True), ("f(1, 2)", False)])
def test_a_mutant_is_caught_by_the_test_of_its_edge(tmp_path: Path, asserted: str, caught: bool) -> None:
    source = b"def f(a, b):\n    return a < b\n"
    (tmp_path / "few.py").write_bytes(source)
    (tmp_path / "test_few.py").write_text(f"from few import f\n\ndef test() -> None:\n    assert {asserted}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    integration\n    faults\n")
    room = mutants.TestedRoom(["."], ["test_few.py"])
    (mutant,) = mutants_of("few.py", source)
    assert mutants._failure(tmp_path, room) is None
    assert caught == mutants._catches(tmp_path, room, mutant)
    assert source == (tmp_path / "few.py").read_bytes()


def test_everything_of_a_room_is_there() -> None:
    paths = [path for room in mutants.ROOMS.values() for path in (*room.sources, *room.tests)]
    assert [] == [path for path in paths if not (mutants.ROOT / path).exists()]
