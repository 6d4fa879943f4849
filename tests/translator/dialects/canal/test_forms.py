"""Proofs of another form than the declared one, and what only looks like one (§6.5 B, D)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given

from dev.demo.writers.canal import DTS_LEGACY
from tests.sizes import examples
from tests.translator.dialects.canal.history import History, histories, messages, sent, translated
from tests.translator.dialects.canal.messages import UPDATE, canal, of_type, update
from translator.message import Changes, Finding, Message

ROW = {"id": "7", "name": "new", "n": "1"}
BEFORE = {"id": "7", "name": "old", "n": "1"}
KEYLESS = {"pkNames": None}


def found(*bodies: Mapping[str, Any], **options: Any) -> list[Finding]:
    """Return the guard's findings about messages, in order."""
    dialect = canal(**options)
    guard, findings = dialect.guard(), []
    assert guard is not None
    for offset, body in enumerate(bodies):
        message = Message("raw.shop", 2, offset, 1700000000500, None, json.dumps(body).encode())
        outcome = dialect.decode(message)
        assert isinstance(outcome, Changes)
        findings += guard.inspect(message, outcome.changes)
    return findings


@pytest.mark.parametrize(
    "body",
    [
        update(data=[ROW], old=[BEFORE]),
        update(data=[ROW], old=[{**BEFORE, "n": "2"}]),  # all but the key changed
        update(data=[ROW], old=[ROW]),
        update(data=[ROW], old=[BEFORE], **KEYLESS),
        update(data=[ROW, ROW], old=[BEFORE, {"name": "old"}]),
    ],
    ids=["one column", "all but the key", "nothing", "without a key", "and another row"],
)
def test_canal_lists_no_unchanged_column_in_a_first_row(body: Mapping[str, Any]) -> None:
    """A full `old` with an unchanged key is from another writer, and may be the new row."""
    finding, *_ = found(UPDATE, body, profile="oss")
    assert finding.fatal
    for said in (
        *("source s, table 'shop.orders', topic raw.shop, partition 2, offset 1 (row 0)", "profile oss"),
        *(
            "the UPDATE lists all columns in old, unchanged ones too",
            "The last UPDATE before it, at offset 0, was read",
        ),
        *("dts_legacy", "drs (Huawei DRS)", "ticdc", "translator init"),
    ):
        assert said in finding.text
    assert "new" not in finding.text.replace("translator", "")


@pytest.mark.parametrize(
    ("body", "options"),
    [
        # Row 1 of a message that a partitioner split: the columns changed in row 0 are listed there.
        (update(data=[ROW], old=[{"name": "old", "n": "1"}]), {}),
        (update(data=[ROW, ROW], old=[{"name": "old"}, BEFORE]), {}),
        # The statement changed the keys of earlier rows, and this one may have been split off.
        (update(data=[ROW], old=[{**BEFORE, "id": "6"}]), {}),
        (update(data=[ROW], old=[{**BEFORE, "id": "6"}], pkNames=["id", "n"]), {}),
        (update(data=[ROW], old=[{"id": "6", "name": "old", "n": "2"}], **KEYLESS), {}),
        # Under MINIMAL and NOBLOB, canal compares columns by position in images with different columns.
        (update(data=[ROW], old=[BEFORE]), {"row_image": "partial"}),
        *((update(data=[ROW], old=[BEFORE]), {"profile": name}) for name in ("dts", "drs", "ticdc", "flink_cdc")),
    ],
)
def test_what_other_streams_have_too_proves_nothing(body: Mapping[str, Any], options: dict[str, Any]) -> None:
    assert [] == found(body, **{"profile": "oss", **options})


def test_a_mark_of_another_writer_alone_is_no_proof_of_a_form() -> None:
    """The mark is noted. Two full images become a dead letter if a legacy instance may have sent them."""
    assert [] == found(update(id=0), of_type("DELETE", [ROW], id=0), update(es=1700000000001), profile="oss")


def test_the_operator_may_have_it_only_reported() -> None:
    bodies = [update(data=[ROW], old=[BEFORE])] * 3
    findings = found(*bodies, profile="oss", continuity={"action": "warn"})
    assert [False] == [finding.fatal for finding in findings]


@given(histories(key_changes=False))
@examples(3)
def test_no_update_of_a_legacy_stream_is_read_the_wrong_way_round_under_oss(history: History) -> None:
    """It stops at the first UPDATE or DELETE, whichever comes first, before that is written."""
    result = translated(messages(sent((change, DTS_LEGACY, None) for change in history.changes)), profile="oss")
    news = ("insert", "load")
    first = next((n for n, change in enumerate(history.changes) if change.op not in news), len(history.changes))
    assert [*range(first)] == result.offsets
    assert (result.stopped is None) == (first == len(history.changes))
