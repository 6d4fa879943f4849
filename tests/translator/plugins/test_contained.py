"""A plug-in that raises, hangs, returns nonsense or quotes rows: each becomes a dead letter without row data."""

import json
import signal
import threading
import time
from pathlib import Path

import pytest

from cdc_core.envelope import Column, TableSchema
from tests.translator.plugins.installed import PAIRS, install
from translator.codecs.avro import AvroCodec
from translator.config.mask_rules import MaskRule
from translator.dialects import _time_limit, build
from translator.errors import ConfigError, ErrorCode
from translator.message import Changes, Guarded, Learning, Limits, Message, MessageError, Naming, Sequenced, Setup, Skip
from translator.operations.file_translator import FileTranslator, of_dialect
from translator.translation.dead_letter import DeadLetter
from translator.translation.masking import SourceMasks
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
        ("time", "RowChange.ts_commit_us does not have its declared type"),
        ("surrogate", "RowChange.after does not have its declared type"),
        ("table", "RowChange.table does not have its declared type"),
        ("needs", "Needs.key does not have its declared type"),
        ("learns", "Learned.document does not have its declared type"),
        ("lazy exit", "SystemExit in "),
        ("interrupt", "KeyboardInterrupt in "),
        ("cancel", "CancelledError in "),
        ("generator", "GeneratorExit in "),
        ("liar", "ZeroDivisionError in the Liar that the dialect raised"),
        ("schema text", "Needs has schema_text"),
        ("schema", "not a canonical type"),
        ("list", "an image maps str to list"),
        ("empty", "ValueError in translation/translate.py"),
        ("op", "KeyError in translation/translate.py"),
        ("reason", "the reason to skip the message is not a keyword"),
        ("announced", "a change is a str"),
        ("learned", "JSONDecodeError in json/decoder.py"),
    ],
)
def test_a_failure(pairs: FileTranslator, do: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the type of the exception or the kind of result, but not the row. The next message is read."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)  # as in the service, which handles Ctrl-C itself
    letter = dead(pairs, do, CARD if do != "decimal" else "4111.25")
    assert ErrorCode.DIALECT_FAILED == letter.code
    assert said in letter.reason
    assert works(pairs)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key_kind": CARD}, "a key_kind is not one of primary, unique, configured, none"),
        ({"types": {"id": CARD}}, "not a canonical type"),
        ({"notes": [CARD]}, "a note is not a word of capital letters"),
        ({"row": -1}, "RowChange.row is negative"),
        ({"rows": 0}, "RowChange.rows is less than 1"),
        ({"ext": {"x": 1}}, "RowChange.ext[...] does not have its declared type"),
    ],
)
def test_a_value_that_is_not_allowed(pairs: FileTranslator, fields: object, said: str) -> None:
    """Consumers get only values from the closed lists."""
    outcome = pairs.translate(message({"do": "set", "card": fields})).outcome
    assert isinstance(outcome, DeadLetter)
    assert (ErrorCode.DIALECT_FAILED, True, False) == (outcome.code, said in outcome.reason, CARD in outcome.reason)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"do": "no table"}, "the name of a table is empty"),
        ({"do": "no column"}, "the name of a column is empty"),
        ({"do": "time", "card": 2**70}, "has a whole number beyond 64 bits"),
        ({"id": 2**70}, "RowChange.after has a whole number beyond 64 bits"),
    ],
)
def test_a_value_that_only_the_message_can_have(pairs: FileTranslator, body: object, said: str) -> None:
    """The message is rejected, and the dialect is not blamed for it."""
    outcome = pairs.translate(message(body)).outcome
    assert isinstance(outcome, DeadLetter)
    assert (ErrorCode.INVALID_FIELD, True) == (outcome.code, said in outcome.reason)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_number_that_is_not_finite(pairs: FileTranslator, number: str) -> None:
    """JSON has no such number, and NULL would be another value."""
    assert "a number that is not finite" in dead(pairs, "not finite", number).reason


def test_a_schema(pairs: FileTranslator) -> None:
    """A schema gets the name of its source and table, and its real fingerprint."""
    changes = build("pairs", Setup("s"), {}).decode(message({"do": "schema", "card": "int64"}))
    assert isinstance(changes, Changes)
    columns = (Column("id", "int64", key=1),)
    assert TableSchema.of("s", None, None, "pairs", columns, "none") == changes.changes[0].schema


def test_a_ctrl_c(pairs: FileTranslator) -> None:
    """A command can be interrupted while a plug-in runs."""
    with pytest.raises(KeyboardInterrupt):
        pairs.translate(message({"do": "interrupt"}))


def test_a_text_that_cannot_be_encoded(pairs: FileTranslator) -> None:
    """A dead letter can be written for each rejection, and its code is one of the translator's."""
    outcome = pairs.translate(message({"do": "odd"})).outcome
    assert isinstance(outcome, DeadLetter)
    assert ErrorCode.INVALID_FIELD is outcome.code
    assert rb"a \ud800 at $.\ud800" in outcome.reason.encode()


@pytest.mark.parametrize("do", ["rows", "lazy loop"])
def test_too_many_changes(pairs: FileTranslator, do: str) -> None:
    outcome = pairs.translate(message({"do": do, "id": 1})).outcome
    assert isinstance(outcome, DeadLetter)
    assert (ErrorCode.LIMIT_EXCEEDED, True) == (outcome.code, "limits.rows" in outcome.reason)


@pytest.mark.parametrize("body", ["yield exit(5)", "while True: yield self.table"])
def test_tables_that_come_lazily(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator neither stops the process nor runs for ever."""
    install(tmp_path, monkeypatch, code=with_members(f"def tables(self, message):\n            {body}\n"))
    assert Translator("s", build("pairs", Setup("s"), {}), Limits()).tables(message({"do": "reject"})) is None


def test_the_line_of_a_failure(pairs: FileTranslator) -> None:
    """The author finds the line without the text of the exception."""
    assert "cdc_pairs.py:" in dead(pairs, "raise").reason


def test_a_rejection(pairs: FileTranslator) -> None:
    """The dialect rejects a message with a code of its own choice."""
    outcome = pairs.translate(message({"do": "reject"})).outcome
    assert isinstance(outcome, DeadLetter)
    assert (ErrorCode.INVALID_FIELD, True) == (outcome.code, "no field x" in outcome.reason)


def test_a_rejection_with_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is withheld, so the author gets the line of the plug-in that rejected the message."""
    install(tmp_path, monkeypatch)
    masks = SourceMasks("s", [MaskRule("set_null")])
    letter = Translator("s", build("pairs", Setup("s"), {}), Limits(), None, masks).translate(message({"do": "reject"}))
    assert isinstance(letter, DeadLetter)
    assert ("cdc_pairs.py:" in letter.reason, "no field x" in letter.reason) == (True, False)


def test_a_schema_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`translate --schemas` with a dialect that learns nothing is a mistake in the call."""
    install(tmp_path, monkeypatch, code=PAIRS.replace("return json.loads(document)", "raise NotImplementedError"))
    with pytest.raises(ConfigError, match="dialect pairs cannot read the schema registry/1: NotImplementedError in "):
        of_dialect("pairs", {}, "s", [], lambda text: None).teach("registry/1", b"{}")


def test_a_key_that_the_row_lacks(pairs: FileTranslator) -> None:
    """The row is written without a key, as for a built-in dialect: no key is better than a wrong one."""
    translation = pairs.translate(message({"do": "key", "id": 1}))
    assert translation.events is not None
    (event,) = translation.events.events
    assert (None, ["KEY_INCOMPLETE"]) == (event.key, event.notes)


@pytest.mark.parametrize("do", ["loop", "stubborn loop", "sleep", "regex", "lazy sleep"])
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


def test_a_timer_of_other_code(pairs: FileTranslator) -> None:
    """A call does not stop a timer that was running before, even if the timer expires during the call."""
    expired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: expired.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 3600, 7)
        assert works(pairs)
        left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
        assert (True, 7.0) == (3000 < left < 3600, interval)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        pairs.translate(message({"do": "nap"}))
        for _ in range(600):
            if not expired:
                time.sleep(0.1)
        assert [signal.SIGALRM] == expired
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
