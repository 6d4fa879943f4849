"""The cache is correct and bounded."""

from collections.abc import Hashable

import pytest

from translator.codecs._memo import MAX_ENTRIES, MAX_LENGTH, Memo


def test_made_once() -> None:
    """A repeated key is not computed again."""
    made: list[str] = []

    def make(key: str) -> bytes:
        made.append(key)
        return key.encode()

    memo = Memo(make)
    assert [b"a", b"b", b"a", b"a"] == [memo[key] for key in "abaa"]
    assert ["a", "b"] == made


def test_number_is_bounded() -> None:
    """With any number of names, a bounded number is cached, and each result is right."""
    memo = Memo(str.encode)
    for number in range(3 * MAX_ENTRIES):
        assert str(number).encode() == memo[str(number)]
        assert len(memo) <= MAX_ENTRIES


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        ("x" * MAX_LENGTH, "x" * (MAX_LENGTH + 1)),
        (("x", None, "x" * (MAX_LENGTH - 2)), ("x", None, "x" * (MAX_LENGTH - 1))),
        (("x",) * MAX_LENGTH, ("",) * MAX_LENGTH + ("x", 7) * MAX_LENGTH),
        (2**63, (1,) * (MAX_LENGTH + 1)),
    ],
    ids=["text", "texts", "many texts", "numbers"],
)
def test_length_is_bounded(kept: Hashable, dropped: Hashable) -> None:
    """A long value is computed each time and not cached."""
    memo = Memo(repr)
    assert (repr(kept), repr(dropped)) == (memo[kept], memo[dropped])
    assert [kept] == list(memo)


def test_an_error_is_not_kept() -> None:
    """A failing computation fails each time."""
    memo = Memo(str.encode)
    for _ in range(2):
        with pytest.raises(UnicodeEncodeError):
            memo["\ud800"]
    assert {} == memo
