"""Text and bytes in the spellings of writers, and the raw text of issues."""

import base64
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.values.outcome import NOT_ASCII, NOT_TEXT, Issue, check, outcome
from translator import values
from translator.values import Unrepresentable, converter


class TestBinarySpellings:
    @pytest.mark.parametrize(
        ("read", "value", "expected"),
        [
            (values.bytes_from_hex, "00ff", "AP8="),
            (values.bytes_from_hex, "00FF", "AP8="),
            (values.bytes_from_hex, "", ""),
            (values.bytes_from_hex, "0", Issue("NOT_HEX")),
            (values.bytes_from_hex, "zz", Issue("NOT_HEX")),
            (values.bytes_from_hex, "0x00", Issue("NOT_HEX")),
            (values.bytes_from_hex, "00 ff", Issue("NOT_HEX")),
            (values.bytes_from_hex, "é", NOT_ASCII),
            (values.bytes_from_hex, b"00", NOT_TEXT),
            (values.bytes_from_base64, "AP8=", "AP8="),
            (values.bytes_from_base64, "", ""),
            (values.bytes_from_base64, "AP8", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "AP8=\n", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "A P8=", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "AP9=", Issue("NOT_BASE64")),  # bits beyond the last byte
            (values.bytes_from_base64, "AP8==", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "=", Issue("NOT_BASE64")),
            (values.bytes_from_base64, "AP-_", Issue("NOT_BASE64")),
            (values.bytes_from_base64, b"AP8=", NOT_TEXT),
            (values.bytes_from_base64, "é", NOT_ASCII),
            (values.bytes_from_latin1, "\x00ÿ", "AP8="),
            (values.bytes_from_latin1, "Ā", Issue("NOT_LATIN1")),
            (values.bytes_from_latin1, b"x", NOT_TEXT),
        ],
    )
    def test_table(self, read: Callable[[object], str], value: object, expected: object) -> None:
        """A writer's spelling of bytes becomes base64. Any other spelling is an issue."""
        check(read, value, expected)

    @given(st.binary(max_size=40))
    def test_all_spellings_agree(self, content: bytes) -> None:
        """The same bytes in hex, base64, latin-1 or binary have one canonical form."""
        expected = base64.b64encode(content).decode()
        assert expected == values.bytes_from_hex(content.hex())
        assert expected == values.bytes_from_hex(content.hex().upper())
        assert expected == values.bytes_from_base64(expected)
        assert expected == values.bytes_from_latin1(content.decode("latin-1"))
        assert expected == converter("bytes")(content)

    @given(st.text("AZaz09+/=-_ \n", max_size=8))
    def test_base64_is_what_a_writer_writes(self, text: str) -> None:
        """Text is base64 only if encoding its bytes gives it back. Otherwise it is an issue and not another value."""
        found = outcome(values.bytes_from_base64, text)
        if not isinstance(found, Issue):
            assert text == found == base64.b64encode(base64.b64decode(text)).decode()


class TestRawText:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("0000-00-00", "0000-00-00"),
            (b"\x00\xff", "AP8="),
            (Decimal("1E+3000"), "1E+3000"),
            (7, "7"),
            ("a\ud800", "a\\ud800"),
        ],
    )
    def test_raw(self, value: object, expected: str) -> None:
        """The raw text of an issue can always be written: bytes as base64, and lone surrogates escaped."""
        assert expected == Unrepresentable("CODE", value).raw
