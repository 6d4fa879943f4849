"""The messages about typical configuration mistakes."""

from tests.translator.commands.mistakes import GOLDEN, MISTAKES, told


def test_every_mistake() -> None:
    """Each mistake is reported with the words in the file and without secrets."""
    said = told()
    assert said == GOLDEN.read_text(encoding="utf-8"), "python -m tests.translator.commands.mistakes"
    assert len(MISTAKES) == said.count(": exit code 2\n") > 40
    assert "hush-hush" not in said
    assert "Input should" not in said
    assert "Traceback" not in said
