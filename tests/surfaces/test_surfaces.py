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


_WITHOUT_FORM = {
    # Their outputs have no declared type (docs/stability.md).
    "translator dlq discard",
    "translator dlq ls",
    "translator dlq replay",
    "translator dlq show",
    "translator explain",
    "translator schema ls",
}


def test_each_json_output_has_its_form() -> None:
    """Each command with `--json` has the form of its output in the text."""
    commands, command = set(), ""
    for line in text("command_lines").splitlines():
        command = command if line.startswith(" ") else line
        if line.startswith("    --json:"):
            commands.add(command)
    shown = {line.removesuffix(" --json") for line in text("json").splitlines() if line.endswith(" --json")}
    assert commands == shown | _WITHOUT_FORM
