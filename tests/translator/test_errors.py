"""The class of an error determines the decision, and its text is safe for a terminal."""

import tracemalloc

import pytest

from translator.errors import (
    CdcError,
    ConfigError,
    ErrorCode,
    FatalError,
    MessageError,
    RetryableError,
    quote,
    unknown,
)


def test_tree() -> None:
    """Each error concerns one message, the environment or the process. A configuration error also ends the process."""
    assert [(CdcError,)] * 3 == [error.__bases__ for error in (MessageError, RetryableError, FatalError)]
    assert (FatalError,) == ConfigError.__bases__


def test_code_is_its_name() -> None:
    """The header `cdc-error-code` has the name that the code and the documentation use."""
    assert [code.name for code in ErrorCode] == [code.value for code in ErrorCode]


def test_message_error() -> None:
    """A refusal keeps its parts and reads as one sentence."""
    error = MessageError(ErrorCode.MISSING_FIELD, "table is missing", path="$.head.table")
    assert "table is missing at $.head.table" == str(error)
    assert (ErrorCode.MISSING_FIELD, "table is missing", "$.head.table") == (error.code, error.reason, error.path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ins", "'ins'"),
        ("", "''"),
        ("x" * 40, f"'{'x' * 40}'"),
        ("x" * 41, f"'{'x' * 40}…'"),
        ("a\n\x1b[31m", r"'a\n\x1b[31m'"),
        ("\ud800", r"'\ud800'"),
        (7, "'7'"),
    ],
)
def test_quote(value: object, expected: str) -> None:
    """A quoted word is bounded, and control characters do not reach the terminal."""
    assert expected == quote(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("UPDAT", "unknown operation 'UPDAT' (did you mean UPDATE?); allowed: DELETE, INSERT, UPDATE"),
        ("x", "unknown operation 'x'; allowed: DELETE, INSERT, UPDATE"),
        (None, "unknown operation 'None'; allowed: DELETE, INSERT, UPDATE"),
    ],
)
def test_unknown(value: object, expected: str) -> None:
    """The error for a word outside a closed list contains the closest match, if any, and the whole list."""
    assert expected == unknown("operation", value, ["INSERT", "UPDATE", "DELETE"])


def test_unknown_of_any_length() -> None:
    """Only the beginning of a very long word is compared, because memory grows with its length."""
    word = "".join(map(chr, range(0x4E00, 0x9E00))) * 50
    tracemalloc.start()
    try:
        unknown("operation", word, ["INSERT"])
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
