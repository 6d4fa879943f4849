"""Reasons for sources with masks."""

import pytest

from translator.errors import ErrorCode, MessageError
from translator.translation.refusals import without_text

VALUE = "4111 1111"


@pytest.mark.parametrize("code", ErrorCode)
def test_a_reason_without_values_says_what_is_wrong(code: ErrorCode) -> None:
    """Each code has a sentence. Nothing from the message is in it, except for codes whose reasons have no values."""
    text = without_text(MessageError(code, f"unknown type {VALUE}", path=f"$.{VALUE}"))
    own = (ErrorCode.HELD, ErrorCode.DIALECT_FAILED, ErrorCode.INTERNAL, ErrorCode.TOO_LARGE, ErrorCode.TOPIC_REFUSED)
    if code not in own:
        sentence, _, rest = text.partition("; ")
        assert VALUE not in text
        assert sentence
        assert "the content is not shown because columns of the source are masked" in rest
