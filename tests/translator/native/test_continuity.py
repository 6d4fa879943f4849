"""The continuity check gives the same result for native and plain translation."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dev.demo.writers.canal import DTS, DTS_FULL, DTS_LEGACY
from tests.sizes import examples
from tests.translator.dialects.canal.history import RIGHT, History, histories, messages, sent, swapped
from tests.translator.dialects.canal.messages import canal
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import opened_path
from translator.errors import ContradictionError
from translator.message import Message
from translator.translation.partition_guards import Guards

pytestmark = needs_extension

FORMS = {"changed": DTS, "current": DTS_FULL, "legacy": DTS_LEGACY}
PROFILES = ("dts", "dts_legacy", "oss", "auto")
WARN = {"action": "warn"}


def said(topic: list[Message], *, native: bool, **options: Any) -> tuple[list[str], str | None, int]:
    """Return the warnings, the error that stopped the process, and the number of native messages."""
    translator, path = opened_path(canal(**options))
    warnings: list[str] = []
    guards = Guards(translator.dialect, warnings.append)
    taken = 0
    for message in topic:
        (found,) = path.take([message])
        try:
            if native and not isinstance(found, str):
                taken += 1
                _, error = guards.inspect_taken([message], [found])
                if error is not None:
                    raise error
            else:
                guards.inspect(message, translator.translate(message))
        except ContradictionError as error:
            return warnings, str(error), taken
    return warnings, None, taken


def assert_same(topic: list[Message], **options: Any) -> int:
    """Compare both paths with a stopping and a warning check, and return the number of native messages."""
    for action in ("stop", "warn"):
        chosen = {**options, "continuity": {"action": action, "keys": 3}}
        *native, taken = said(topic, native=True, **chosen)
        *plain, _ = said(topic, native=False, **chosen)
        assert native == plain
    return taken


@examples(1)
@given(history=histories(), form=st.sampled_from(sorted(FORMS)), profile=st.sampled_from(PROFILES))
def test_one_form_rightly_declared_or_not(history: History, form: str, profile: str) -> None:
    assert_same(messages(sent((change, FORMS[form], None) for change in history.changes)), profile=profile)


@examples(1)
@given(history=histories(), swap=st.integers(0, 14), again=st.integers(0, 3))
def test_a_restarted_instance(history: History, swap: int, again: int) -> None:
    at = min(swap, len(history.changes))
    assert_same(messages(swapped(history.changes, at, min(again, at), DTS_FULL)), **RIGHT)


def test_such_messages_are_taken_and_a_contradiction_is_found() -> None:
    """Otherwise the properties above would prove nothing."""
    history = History()
    history.new(1, 1)
    for value in (2, 3, 4):
        history.update(1, a=value)
    topic = messages(sent((change, DTS_LEGACY, None) for change in history.changes))
    warnings, stopped, taken = said(topic, native=True, profile="dts", continuity={})
    assert "contradicts the change at offset" in (stopped or "")
    assert taken >= 2
    assert Counter(warnings).total() == 0


def test_deletes_in_both_forms_are_reported_if_the_writer_is_not_declared() -> None:
    """The first DELETE has its row in `old`, which only the plain path reads. The second one is native."""
    body = {"type": "DELETE", "database": "d", "table": "t", "mysqlType": {"id": "int"}, "pkNames": ["id"], "id": 7}
    row = [{"id": "1"}]
    values = [msgspec.json.encode(body | images) for images in ({"old": row}, {"data": row}, {"old": row})]
    topic = [Message("raw", 0, offset, 1, None, value) for offset, value in enumerate(values)]
    warnings, _, taken = said(topic, native=True, profile="auto")
    assert 1 == taken
    assert 3 == len(warnings)
    assert said(topic, native=False, profile="auto")[0] == warnings
