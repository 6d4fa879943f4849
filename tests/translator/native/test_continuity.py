"""The continuity check gives the same result for native and plain translation, in any mixture."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.writers.canal import DTS, DTS_FULL, DTS_LEGACY
from tests.sizes import examples
from tests.translator.dialects.canal.history import RIGHT, History, histories, messages, sent, swapped
from tests.translator.dialects.canal.messages import canal
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import opened_path
from translator import _native
from translator.dialects.canal.continuity import ContinuityGuard
from translator.dialects.canal.key_states import DATA_AFTER, DATA_BEFORE
from translator.dialects.canal.known_rows import PlainKnownRows
from translator.errors import ContradictionError
from translator.message import Dialect, Message, TableName
from translator.translation.partition_guards import Guards

pytestmark = needs_extension

FORMS = {"changed": DTS, "current": DTS_FULL, "legacy": DTS_LEGACY}
PROFILES = ("dts", "dts_legacy", "oss", "auto")

KEYS = [b'{"id":%d}' % number for number in range(1, 5)]
"""The keys in `histories`, one more than the check remembers here."""


@dataclass
class Said:
    """The warnings, the error that stopped the process, the state of the check, and the number of native messages."""

    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None
    state: object = None
    taken: int = 0


def without_extension(dialect: Dialect) -> Any:
    """Return a guard whose state is not in the extension, except that images have the same hashes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_native.SWITCH, "off")
        guard = cast(Any, dialect).guard()
    if isinstance(guard, ContinuityGuard):
        from translator._native import rows

        assert isinstance(guard._known, PlainKnownRows)
        guard._known.digest = rows.KnownRows.digest  # type: ignore[method-assign]
    return guard


def state_of(guard: Any) -> object:
    """Return all observable parts of a guard's state."""
    if not isinstance(guard, ContinuityGuard):
        return None
    known = guard._known
    rows = [known.get(TableName("shop", None, "t"), key) for key in KEYS]
    return known.horizon, rows, known.unconfirmed(DATA_AFTER), known.unconfirmed(DATA_BEFORE)


def said(topic: Sequence[Message], *, native: Sequence[bool], missed: int = -1, **options: Any) -> Said:
    """Return what the check says about messages.

    Args:
        native: whether each message takes the native path, if it can. Neighbours are checked as one run. If no message
            can, the guard's state is not in the extension.
        missed: the number of a message without events.
    """
    translator, path = opened_path(canal(**options))
    dialect = translator.dialect
    guard = cast(Any, dialect).guard() if any(native) else without_extension(dialect)
    result = Said()
    guards = Guards(cast(Dialect, SimpleNamespace(guard=lambda: guard)), result.warnings.append)
    run: list[tuple[Message, Any]] = []

    def end_run() -> None:
        if run:
            messages, taken = zip(*run, strict=True)
            run.clear()
            count, error = guards.inspect_taken(messages, list(taken))
            result.taken += count
            if error is not None:
                assert f"offset {messages[count].offset}" in str(error)
                raise error

    try:
        for number, (message, is_native) in enumerate(zip(topic, native, strict=True)):
            (found,) = path.take([message]) if is_native and number != missed else ("plain",)
            if not isinstance(found, str):
                run.append((message, found))
                continue
            end_run()
            if number == missed:
                guards.missed(message)
            else:
                guards.inspect(message, translator.translate(message))
        end_run()
    except ContradictionError as error:
        result.stopped = str(error)
    result.state = state_of(guard)
    return result


def assert_same(data: st.DataObject, topic: Sequence[Message], **options: Any) -> None:
    """Compare all-plain, all-native and mixed messages, with a stopping and a warning check."""
    mixed = data.draw(st.lists(st.booleans(), min_size=len(topic), max_size=len(topic)), "native")
    missed = data.draw(st.integers(-4, len(topic) - 1), "missed")
    for action in ("stop", "warn"):
        chosen = {**options, "continuity": {"action": action, "keys": len(KEYS) - 1}}
        plain = said(topic, native=[False] * len(topic), missed=missed, **chosen)
        for native in ([True] * len(topic), mixed):
            if any(native):
                found = said(topic, native=native, missed=missed, **chosen)
                assert (plain.warnings, plain.stopped, plain.state) == (found.warnings, found.stopped, found.state)


@st.composite
def joined(draw: st.DrawFn, topic: Sequence[Message]) -> list[Message]:
    """Put some neighbouring changes of one type into one message with several rows."""
    bodies: list[dict[str, Any]] = []
    for message in topic:
        body = json.loads(message.value or b"")
        last = bodies[-1] if bodies else {}
        same = all(bool(last.get(field)) == bool(body.get(field)) for field in ("data", "old"))
        if last.get("type") == body["type"] and same and draw(st.integers(0, 3)) == 0:
            for rows in ("data", "old"):
                last[rows] = [*(last.get(rows) or ()), *(body.get(rows) or ())] or None
        else:
            bodies.append(body)
    values = [json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() for body in bodies]
    return [Message("raw.t", 0, offset, 0, None, value) for offset, value in enumerate(values)]


@examples(2)
@given(st.data(), histories(), st.sampled_from(sorted(FORMS)), st.sampled_from(PROFILES))
def test_one_form_rightly_declared_or_not(data: st.DataObject, history: History, form: str, profile: str) -> None:
    topic = messages(sent((change, FORMS[form], None) for change in history.changes))
    assert_same(data, data.draw(joined(topic)), profile=profile)


@examples(2)
@given(st.data(), histories(), st.integers(0, 14), st.integers(0, 3))
def test_a_restarted_instance(data: st.DataObject, history: History, swap: int, again: int) -> None:
    at = min(swap, len(history.changes))
    assert_same(data, data.draw(joined(messages(swapped(history.changes, at, min(again, at), DTS_FULL)))), **RIGHT)


def test_such_messages_are_taken_and_a_contradiction_is_found() -> None:
    """Otherwise the properties above would prove nothing."""
    history = History()
    history.new(1, 1)
    for value in (2, 3, 4):
        history.update(1, a=value)
    topic = messages(sent((change, DTS_LEGACY, None) for change in history.changes))
    found = said(topic, native=[True] * len(topic), profile="dts", continuity={})
    assert "contradicts the change at offset" in (found.stopped or "")
    assert found.taken >= 1
    assert [] == found.warnings


def test_deletes_in_both_forms_are_reported_if_the_writer_is_not_declared() -> None:
    """The first DELETE has its row in `old`, which only the plain path reads. The second one is native."""
    body = {"type": "DELETE", "database": "d", "table": "t", "mysqlType": {"id": "int"}, "pkNames": ["id"], "id": 7}
    row = [{"id": "1"}]
    values = [msgspec.json.encode(body | images) for images in ({"old": row}, {"data": row}, {"old": row})]
    topic = [Message("raw", 0, offset, 1, None, value) for offset, value in enumerate(values)]
    found = said(topic, native=[True] * 3, profile="auto")
    assert 1 == found.taken
    assert 3 == len(found.warnings)
    assert said(topic, native=[False] * 3, profile="auto").warnings == found.warnings
