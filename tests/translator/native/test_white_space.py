"""White space between the tokens of a JSON message, as Python's `json.dumps` and pretty printers write it."""

import json

import msgspec
import pytest

from bench.steps.shop_updates import feed
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree, opened_path
from translator.message import Message

pytestmark = needs_extension

DIALECTS = ("canal", "shareplex", "qlik")


def _message(dialect: str) -> Message:
    return feed(dialect, 5, 1).messages[0]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("around", ["", " \n"])
@pytest.mark.parametrize("indent", [None, 2, "\t", "\r\n "])
def test_a_message_with_white_space_is_taken(dialect: str, indent: int | str | None, around: str) -> None:
    """Its records equal those of the message without white space."""
    message = _message(dialect)
    written = json.dumps(json.loads(message.value or b""), indent=indent, ensure_ascii=False)
    spaced = msgspec.structs.replace(message, value=f"{around}{written}{around}".encode())
    translator, path = opened_path(feed(dialect, 5, 1).dialect)
    assert "taken" == agree(translator, path, spaced)
    short, long = path.take([message, spaced])
    assert not isinstance(short, str)
    assert not isinstance(long, str)
    assert short.outputs == long.outputs


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("blank", "taken"),
    [(b" ", True), (b"\t", True), (b"\n", True), (b"\r", True), (b"\x0b", False), (b"\xc2\xa0", True)],
)
def test_white_space_anywhere(dialect: str, blank: bytes, *, taken: bool) -> None:
    """Both paths agree wherever a character is inserted: between tokens, inside of them, or in a string."""
    message = _message(dialect)
    value = message.value or b""
    translator, path = opened_path(feed(dialect, 5, 1).dialect)
    results = {
        agree(translator, path, msgspec.structs.replace(message, value=value[:at] + blank + value[at:]))
        for at in range(len(value) + 1)
    }
    assert taken is ("taken" in results)
    assert results - {"taken"}
