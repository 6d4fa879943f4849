"""A plug-in that raises, hangs, returns nonsense or quotes rows: each becomes a dead letter without row data."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.translator.plugins.installed import PAIRS, install
from translator.codecs.avro import AvroCodec
from translator.dialects import MaskedValues, _time_limit, build, check_maskable, masked_copy, with_recognizer
from translator.errors import ConfigError, ErrorCode, Unmaskable
from translator.message import Guarded, Learning, Limits, Message, MessageError, Naming, Sequenced, Setup, Skip
from translator.operations.file_translator import FileTranslator, of_dialect
from translator.operations.recognition import recognise
from translator.translation.dead_letter import DeadLetter
from translator.translation.native_path import native_path
from translator.translation.translate import RUN, Translator

CARD = "4111-1111-1111-1111"


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileTranslator:
    install(tmp_path, monkeypatch)
    return of_dialect("pairs", {}, "s", [], lambda text: None)


def message(value: object) -> Message:
    return Message("raw", 0, 7, 0, None, None if value is None else json.dumps(value).encode())


def dead(translator: FileTranslator, do: str, card: str = CARD) -> DeadLetter:
    outcome = translator.translate(message({"do": do, "id": 1, "card": card})).outcome
    assert isinstance(outcome, DeadLetter)
    assert card not in outcome.reason
    return outcome


def with_members(*members: str) -> str:
    """Return the code of the dialect with further members."""
    return PAIRS.replace("def learn(", "\n        ".join([*members, "def learn("]))


def works(translator: FileTranslator) -> bool:
    return len(translator.translate(message({"id": 1})).canonical) == 1


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("raise", "ValueError in "),
        ("exit", "SystemExit in "),
        ("text", "decode returned str instead of an outcome"),
        ("no change", "a change is a str"),
        ("decimal", "an image maps str to "),
        ("code", "a code that is not for dialects"),
        ("time", "a field of RowChange does not have its declared type"),
        ("surrogate", "a field of RowChange does not have its declared type"),
        ("table", "a field of RowChange does not have its declared type"),
        ("needs", "a field of Needs does not have its declared type"),
        ("learns", "a field of Learned does not have its declared type"),
        ("list", "an image maps str to list"),
        ("empty", "ValueError in translation/translate.py"),
        ("op", "KeyError in translation/translate.py"),
        ("reason", "the reason to skip the message is not a keyword"),
        ("announced", "a change is a str"),
        ("learned", "JSONDecodeError in json/decoder.py"),
    ],
)
def test_a_failure(pairs: FileTranslator, do: str, said: str) -> None:
    """The reason names the type of the exception or the kind of result, but not the row. The next message is read."""
    letter = dead(pairs, do, CARD if do != "decimal" else "4111.25")
    assert ErrorCode.DIALECT_FAILED == letter.code
    assert said in letter.reason
    assert works(pairs)


def test_the_line_of_a_failure(pairs: FileTranslator) -> None:
    """The author finds the line without the text of the exception."""
    assert "cdc_pairs.py:" in dead(pairs, "raise").reason


def test_a_rejection(pairs: FileTranslator) -> None:
    """The dialect rejects a message with a code of its own choice."""
    outcome = pairs.translate(message({"do": "reject"})).outcome
    assert isinstance(outcome, DeadLetter)
    assert (ErrorCode.INVALID_FIELD, True) == (outcome.code, "no field x" in outcome.reason)


def test_a_key_that_the_row_lacks(pairs: FileTranslator) -> None:
    """The row is written without a key, as for a built-in dialect: no key is better than a wrong one."""
    translation = pairs.translate(message({"do": "key", "id": 1}))
    assert translation.events is not None
    (event,) = translation.events.events
    assert (None, ["KEY_INCOMPLETE"]) == (event.key, event.notes)


@pytest.mark.parametrize("do", ["loop", "stubborn loop", "sleep", "regex"])
def test_a_hang(pairs: FileTranslator, do: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes too long ends, and so does its timer."""
    monkeypatch.setattr(_time_limit, "SECONDS", 1)
    before = signal.getsignal(signal.SIGALRM)
    letter = dead(pairs, do)
    assert ErrorCode.DIALECT_FAILED == letter.code
    assert "no result within" in letter.reason
    assert works(pairs)
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
    assert before == signal.getsignal(signal.SIGALRM)


def test_other_threads_have_no_limit(pairs: FileTranslator) -> None:
    """Signals reach only the main thread, and elsewhere messages are translated all the same."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(works(pairs)))
    thread.start()
    thread.join()
    assert [True] == found


def test_reasons_are_few(pairs: FileTranslator) -> None:
    """Reasons are labels of a metric, so a dialect cannot have one for each message."""
    outcomes = [pairs.translate(message({"do": "reason", "card": f"reason_{n}"})).outcome for n in range(20)]
    assert [Skip] * 16 + [DeadLetter] * 4 == [type(outcome) for outcome in outcomes]


def test_metadata_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document from the metadata topic, which any program can write, does not stop the process."""
    install(tmp_path, monkeypatch)
    with pytest.raises(MessageError) as error:
        build("pairs", Setup("s"), {}).learn("k", CARD.encode() + b"{")
    assert ErrorCode.DIALECT_FAILED == error.value.code
    assert CARD not in str(error.value)


def test_a_plugin_is_on_the_plain_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no native path and no guards, even with the methods, and its messages are translated one by one."""
    code = with_members("def guard(self): 1 / 0", "def native_rows(self): 1 / 0")
    install(tmp_path, monkeypatch, code=code)
    dialect = build("pairs", Setup("s"), {})
    assert not isinstance(dialect, (Guarded, Naming, Learning, Sequenced))
    translator = Translator("s", dialect, Limits())
    assert isinstance(native_path(translator, [(AvroCodec(), 1_000_000)]), str)
    assert (1, RUN) == (translator.run, Translator("s", build("qlik", Setup("s"), {}), Limits()).run)


def test_optional_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The optional parts of the interface are found, and contained."""
    code = with_members("learns = True", 'native_position = "[0-9]+"', "def tables(self, message): 1 / 0")
    install(tmp_path, monkeypatch, code=code)
    dialect = build("pairs", Setup("s"), {})
    assert isinstance(dialect, Learning)
    assert isinstance(dialect, Sequenced)
    assert isinstance(dialect, Naming)
    assert Translator("s", dialect, Limits()).tables(message({"do": "reject"})) is None


def test_a_dialect_gets_its_own_options_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No argument leads to settings of others or to a secret."""
    code = PAIRS.replace("self.table = ", "type(self).got = (setup, options)\n            self.table = ")
    install(tmp_path, monkeypatch, code=code)
    build("pairs", Setup("s"), {})
    import cdc_pairs  # type: ignore[import-not-found]

    setup, options = cdc_pairs.Pairs.got
    assert {"source", "limits", "tables", "lookup"} == set(setup.__struct_fields__)
    assert isinstance(options, cdc_pairs.Options)


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
