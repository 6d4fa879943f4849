"""Options of dialects and codecs are typed, and unknown ones are rejected."""

from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Struct

from translator.config.options import parse_options
from translator.errors import ConfigError


class Toy(Struct, frozen=True, forbid_unknown_fields=True):
    """Every kind of option that a dialect or codec can have."""

    preset: Literal["one", "two"] = "one"
    presets: tuple[Literal["one", "two"], ...] = ()
    depth: Annotated[int, msgspec.Meta(ge=1)] = 1
    lenient: bool = False
    wait: timedelta = timedelta(0)
    topics: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Toy()),
        ({"preset": "two", "depth": 3, "lenient": True}, Toy("two", (), 3, True)),
        ({"depth": "3", "lenient": "true", "wait": "PT5M"}, Toy("one", (), 3, True, timedelta(minutes=5))),
        ({"lenient": "yes"}, Toy(lenient=True)),
        ({"lenient": "Off"}, Toy(lenient=False)),
        ({"topics": ["no"]}, Toy(topics=("no",))),
        ({"topics": ["a", "b"]}, Toy(topics=("a", "b"))),
    ],
)
def test_read(given: dict[str, Any], expected: Toy) -> None:
    """Options are parsed from typed configuration values and from command-line text."""
    assert expected == parse_options(Toy, given, "toy")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"prest": "one"},
            "toy: unknown option 'prest' (did you mean preset?); allowed: depth, lenient, preset, presets",
        ),
        ({"zzz": 1}, "toy: unknown option 'zzz'; allowed: depth, lenient, preset, presets, topics, wait"),
        ({"preset": "twoo"}, "toy: unknown preset 'twoo' (did you mean two?); allowed: one, two"),
        ({"presets": ["one", "three"]}, "toy: unknown presets 'three'; allowed: one, two"),
        ({"depth": 0}, "toy: option depth: expected a whole number >= 1"),
        ({"depth": "many"}, "toy: option depth: expected a whole number"),
        ({"topics": "a"}, "toy: option topics: expected a list, such as [a, b]"),
    ],
)
def test_wrong(given: dict[str, Any], reason: str) -> None:
    """A wrong name or value is reported with its owner, its place and the allowed values."""
    with pytest.raises(ConfigError) as caught:
        parse_options(Toy, given, "toy")
    assert str(caught.value).startswith(reason)
