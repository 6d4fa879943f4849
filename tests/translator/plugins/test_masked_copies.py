"""Masked copies of records that only a plug-in can read. A record that the plug-in cannot mask is left out."""

import json
from pathlib import Path

import pytest

from tests.translator.plugins.installed import PAIRS, install
from translator.dialects import MaskedValues, build, check_maskable, masked_copy
from translator.errors import ConfigError, Unmaskable
from translator.message import Message, Setup

CARD = "4111-1111-1111-1111"


def message(value: object) -> Message:
    return Message("raw", 0, 7, 0, None, json.dumps(value).encode())


class TestMasks:
    def test_no_function(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch)
        dialect = build("pairs", Setup("s"), {})
        with pytest.raises(ConfigError, match="dialect pairs cannot make masked copies"):
            check_maskable(dialect)
        with pytest.raises(ConfigError):
            masked_copy(dialect, message({"id": 1}), MaskedValues(b"k"))

    def test_a_function(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        more = ", masked_value=lambda value, masked: masked_json(value, masked, lambda path: 'value')"
        install(tmp_path, monkeypatch, more=more)
        dialect = build("pairs", Setup("s"), {})
        check_maskable(dialect)
        copy = masked_copy(dialect, message({"card": CARD}), MaskedValues(b"k"))
        assert CARD not in (copy.value or b"").decode()

    def test_a_function_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The record is left out, with a reason that does not quote it."""
        install(tmp_path, monkeypatch, more=", masked_value=lambda value, masked: int(value)")
        with pytest.raises(Unmaskable, match="its dialect failed: ValueError") as error:
            masked_copy(build("pairs", Setup("s"), {}), message({"card": CARD}), MaskedValues(b"k"))
        assert CARD not in str(error.value)

    @pytest.mark.parametrize("result", ["'text'", "None"])
    def test_a_function_that_returns_no_bytes(
        self, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(tmp_path, monkeypatch, more=f", masked_value=lambda value, masked: {result}")
        with pytest.raises(Unmaskable, match=r"masked_value returned .* instead of bytes"):
            masked_copy(build("pairs", Setup("s"), {}), message({"card": CARD}), MaskedValues(b"k"))

    @pytest.mark.parametrize("result", ["'text'", "Message('t', 0, 0, 0, None, 'text')"])
    def test_a_copy_that_is_no_message(self, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        method = f"def masked_copy(self, message, masked): return {result}"
        code = PAIRS.replace("def learn(", f"{method}\n\n        def learn(")
        install(tmp_path, monkeypatch, code=code)
        with pytest.raises(Unmaskable, match="its dialect failed"):
            masked_copy(build("pairs", Setup("s"), {}), message({"card": CARD}), MaskedValues(b"k"))
