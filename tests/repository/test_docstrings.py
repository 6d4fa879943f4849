"""Docstrings are statements or imperatives, not indirect questions without a question mark."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("cdc_core", "translator", "spark_sink")
FRAGMENT = re.compile(r"(What|Whether|Where|How|Why|Who|Which|Tells?|Says?) ")


def fragments(source: str) -> list[str]:
    """Return the docstrings of a module that begin like a question."""
    return [text.splitlines()[0] for text in _docstrings(ast.parse(source)) if FRAGMENT.match(text)]


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Return every docstring, including those of fields and constants."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield text.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_sentences(package: str) -> None:
    """No docstring in the package is a fragment of a question."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {str(file.relative_to(ROOT)): fragments(file.read_text(encoding="utf-8")) for file in files}
    assert {} == {name: texts for name, texts in found.items() if texts}


def test_the_checker_sees() -> None:
    """The check finds fragments in modules, functions, classes and fields, and accepts sentences."""
    function = 'def f():\n    """Whether so."""\n'
    record = 'class C:\n    """A class."""\n    x = 1\n    """How many."""\n'
    found = fragments(f'"""What it is."""\n{function}{record}')
    assert {"What it is.", "Whether so.", "How many."} == set(found)
    assert [] == fragments('"""The rooms."""\ndef f():\n    """Return what is known."""\n')
