"""The public surfaces are the stored texts, because programs and people outside this repository depend on every line.

An intended addition changes a text: `python -m tests.surfaces` writes all of them. Removing or changing a line breaks
users: docs/stability.md describes how a removal is announced.
"""

import pytest

from tests.surfaces.texts import FOLDER, SURFACES, file, text


@pytest.mark.parametrize("surface", SURFACES)
def test_the_surface_is_the_stored_text(surface: str) -> None:
    assert file(surface).read_text(encoding="utf-8") == text(surface), "python -m tests.surfaces"


def test_every_text_has_a_surface() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == SURFACES.keys()
