"""A contradiction stays one until the operator answers it with another declaration."""

import pytest

from translator.config.settings import Source
from translator.errors import ContradictionError
from translator.state.contradiction_marks import PREFIX, Contradictions

SHOP = Source(name="shop", dialect="canal", topics=("raw",), options={"profile": "dts", "restart_tolerance": 60})


def check(declared: Source, marked: Source = SHOP) -> None:
    """Takes in, as a process with one declaration, the mark of a process with another."""
    mark = Contradictions([marked]).mark(marked.name, ContradictionError("offset 7 contradicts offset 3"))
    Contradictions([declared]).check((mark.key or b"").decode(), mark.value or b"")


def test_it_stands() -> None:
    """The same declaration, in whatever order it is written, meets the same end with the same text."""
    turned = SHOP.model_copy(update={"options": dict(reversed(SHOP.options.items())), "topics": ("raw", "more")})
    for declared in (SHOP, turned):
        with pytest.raises(
            ContradictionError, match=r"offset 7 contradicts offset 3 \(found earlier; source shop stays stopped"
        ):
            check(declared)


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
    """Another declaration goes on, and so does a source that is not concerned."""
    check(declared)


def test_its_key_is_no_metadata() -> None:
    """Metadata of sources lie in the same topic: no name of a source begins so."""
    with pytest.raises(ValueError, match="expected a name of at most 128 letters"):
        Source(name=PREFIX.rstrip("/"), dialect="canal", topics=("raw",))
