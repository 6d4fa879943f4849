"""A contradiction persists until the operator changes the declaration."""

import pytest

from translator.config.settings import Source
from translator.errors import ContradictionError
from translator.state.contradiction_marks import PREFIX, Contradictions

SHOP = Source(name="shop", dialect="canal", topics=("raw",), options={"profile": "dts", "restart_tolerance": 60})


def found(declared: Source, marked: Source = SHOP) -> Contradictions:
    """Read the mark of a process with one declaration in a process with another."""
    mark = Contradictions([marked]).mark(marked.name, ContradictionError("offset 7 contradicts offset 3"))
    contradictions = Contradictions([declared])
    contradictions.apply((mark.key or b"").decode(), mark.value or b"")
    return contradictions


def test_it_stands() -> None:
    """The same declaration, in any order of its options, ends with the same text."""
    turned = SHOP.model_copy(update={"options": dict(reversed(SHOP.options.items())), "topics": ("raw", "more")})
    for declared in (SHOP, turned):
        with pytest.raises(ContradictionError, match=r"offset 7 contradicts offset 3 \(source shop stays stopped"):
            found(declared).check()


@pytest.mark.parametrize(
    "declared",
    [
        SHOP.model_copy(update={"options": {**SHOP.options, "profile": "dts_legacy"}}),
        SHOP.model_copy(update={"options": {**SHOP.options, "continuity": {"action": "warn"}}}),
        SHOP.model_copy(update={"name": "other"}),
    ],
    ids=["another profile", "a warning will do", "another source"],
)
def test_it_is_answered(declared: Source) -> None:
    """A process with another declaration continues, and so does an unaffected source."""
    found(declared).check()


def test_its_key_is_no_metadata() -> None:
    """The topic also contains metadata of sources, whose names cannot begin like this key."""
    with pytest.raises(ValueError, match="expected a name of at most 128 letters"):
        Source(name=PREFIX.rstrip("/"), dialect="canal", topics=("raw",))
