"""Caches that are bounded by size instead of by number."""

from __future__ import annotations

from msgspec import Struct

from cdc_core.sized_cache import SizedCache, SizedMap, size_of


class _Name(Struct, frozen=True):
    db: str | None
    table: str


def test_the_size_of_a_key() -> None:
    """Texts count with their length, and each item also with what a result keeps for it."""
    assert 3 == size_of("abc") == size_of(b"abc")
    assert 0 == size_of(None) == size_of(7)
    assert 2 * 500 + 5 == size_of(("ab", "cde")) == size_of(_Name("ab", "cde"))
    assert 500 + 2 * 500 + 2 == size_of((("a", "b"),))


def test_it_computes_once() -> None:
    asked: list[str] = []
    cache = SizedCache(lambda text: asked.append(text))
    for text in ("a", "a", "b"):
        cache(text)
    assert ["a", "b"] == asked, "also if the result is None"


def test_its_size_is_bounded() -> None:
    """A full cache is cleared, and a large key is not cached."""
    cache: SizedMap[str, int] = SizedMap(most=10, longest=5)
    for number in range(100):
        cache.keep(f"{number:04}", number)
        assert cache.size == sum(map(len, cache)) <= 10
    cache.keep("123456", 1)
    assert "123456" not in cache
    assert 99 == cache["0099"]
