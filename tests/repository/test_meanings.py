"""The desk explains every code and note with the words of the documentation."""

from dev.pages.meanings import files
from translator.errors import ErrorCode
from translator.web.meanings import meaning, meanings


def test_the_files_are_up_to_date() -> None:
    for file, content in files().items():
        assert content == file.read_text(encoding="utf-8"), "python -m dev.pages.meanings"


def test_every_code_has_a_meaning() -> None:
    assert [] == [code.value for code in ErrorCode if code not in meanings()]


def test_a_dialect_explains_its_own_use() -> None:
    """A name that several pages explain has the meaning of its dialect, with or without the subject of a note."""
    canal, shareplex = meaning("TZ_ASSUMED=UTC", "canal"), meaning("TZ_ASSUMED=UTC", "shareplex")
    assert canal is not None
    assert shareplex is not None
    assert ("docs/dialects/canal.md", "docs/dialects/shareplex.md") == (canal.page, shareplex.page)
    assert meaning("OUT_OF_RANGE", "a plug-in") == meaning("OUT_OF_RANGE")
    assert meaning("NO_SUCH_NOTE") is None
