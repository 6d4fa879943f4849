"""`translator init` with plug-ins: each is tried, and one that fails does not affect the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.translator.plugins.installed import install
from translator.dialects import _contained, _time_limit, with_recognizer
from translator.dialects._plugin_calls import call
from translator.message import Message
from translator.operations.recognition import recognise

CARD = "4111-1111-1111-1111"


def message(value: object) -> Message:
    return Message("raw", 0, 7, 0, None, json.dumps(value).encode())


class TestRecognition:
    def said(self) -> tuple[Any, list[str]]:
        warnings: list[str] = []
        (finding,) = recognise({"raw": [message({"id": 1, "x": CARD})]}, with_recognizer(warnings.append))
        return finding, warnings

    def test_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch)
        finding, warnings = self.said()
        assert (None, []) == (finding.dialect, warnings)

    def test_a_recognizer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), propose)")
        finding, warnings = self.said()
        assert ("pairs", {"table": "pairs"}, []) == (finding.dialect, finding.options, warnings)

    def test_a_recognizer_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), int)")
        finding, (warning,) = self.said()
        assert ("pairs", {}) == (finding.dialect, finding.options)
        assert "dialect pairs proposes no options: TypeError in " in warning
        assert CARD not in warning

    def test_a_plugin_that_cannot_be_loaded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, api=2)
        finding, (warning,) = self.said()
        assert finding.dialect is None
        assert warning.startswith("plug-in ignored: dialect pairs (cdc-pairs 1.2) was written for version 2")

    def test_a_recognizer_that_returns_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), lambda sample: None)")
        finding, (warning,) = self.said()
        assert ("pairs", {}) == (finding.dialect, finding.options)
        assert "propose returned something other than a list of Proposal" in warning

    def test_a_plugin_that_hangs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is not asked about every message, because each would take as long."""
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), propose)")
        monkeypatch.setattr(_time_limit, "SECONDS", 1)
        calls: list[object] = []
        monkeypatch.setattr(_contained, "call", lambda *args: [calls.append(args), call(*args)][1])
        sample = [message({"do": "sleep", "id": number}) for number in range(100)]
        (finding,) = recognise({"raw": sample}, with_recognizer(lambda text: None))
        assert (None, 2) == (finding.dialect, len(calls))
        assert "pairs: no result within" in finding.why

    def test_metadata_that_is_rejected(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only this message is a dead letter, and the other dialects are tried."""
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), propose)")
        sample = [message({"do": "learned", "card": text}) for text in ("reject", "damaged", "{}")]
        (finding,) = recognise({"raw": [*sample, message({"id": 1})]}, with_recognizer(lambda text: None))
        assert finding.verdict is not None
        assert ("pairs", 1, 1) == (finding.dialect, finding.verdict.learned, finding.verdict.translated)
        assert {"SCHEMA_MISSING": 1, "DIALECT_FAILED": 1} == {r.code: r.count for r in finding.verdict.refusals}
        assert "no field y" in finding.verdict.refusals[0].reason

    def test_learning_that_hangs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No further message is tried, because each would take as long."""
        install(tmp_path, monkeypatch, more=", recognizer=Recognizer(({},), propose)")
        monkeypatch.setattr(_time_limit, "SECONDS", 1)
        calls: list[object] = []
        monkeypatch.setattr(_contained, "call", lambda *args: [calls.append(args), call(*args)][1])
        sample = [message({"do": "learned", "card": "sleep"})] * 100
        (finding,) = recognise({"raw": sample}, with_recognizer(lambda text: None))
        assert (None, 4) == (finding.dialect, len(calls))
        assert "pairs: no result within" in finding.why
