"""What is remembered is right, and has a bound."""

from collections.abc import Hashable

import pytest

from translator.codecs._memo import MAX_ENTRIES, MAX_LENGTH, Memo


def test_made_once() -> None:
    """A key that comes again is not made again."""
    made: list[str] = []

    def make(key: str) -> bytes:
        made.append(key)
        return key.encode()

    memo = Memo(make)
    assert [b"a", b"b", b"a", b"a"] == [memo[key] for key in "abaa"]
    assert ["a", "b"] == made


def test_number_is_bounded() -> None:
    """However many names come, a bounded number is kept, and each is still right."""
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
    """What is long is made anew each time, and not kept."""
    memo = Memo(repr)
    assert (repr(kept), repr(dropped)) == (memo[kept], memo[dropped])
    assert [kept] == list(memo)


def test_an_error_is_not_kept() -> None:
    """What cannot be made is an error each time."""
    memo = Memo(str.encode)
    for _ in range(2):
        with pytest.raises(UnicodeEncodeError):
            memo["\ud800"]
    assert {} == memo
