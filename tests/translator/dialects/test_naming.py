"""The tables of a rejected message (`message.Naming`) have the names of its events, or none."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.translator.dialects.case import CASES, find_cases, opened
from tests.translator.operations._replay import update
from translator.dialects import DIALECTS, build
from translator.errors import MessageError
from translator.message import Changes, Limits, Message, Naming, RowChange, Setup, TableName
from translator.translation.translate import Translator, tables_of


def of_rows() -> list[Path]:
    """Return the cases with rows or announcements of tables."""
    found = []
    for case in find_cases():
        dialect, message = opened(case)
        try:
            outcome = dialect.decode(message)
        except MessageError:
            continue
        if isinstance(outcome, Changes) and tables_of(outcome.changes):
            found.append(case)
    return found


@pytest.mark.parametrize("case", of_rows(), ids=lambda path: path.relative_to(CASES).as_posix())
def test_the_name_is_that_of_the_events(case: Path) -> None:
    """Only for Qlik's Avro messages is the name unknown."""
    dialect, message = opened(case)
    outcome = dialect.decode(message)
    assert isinstance(outcome, Changes)
    assert isinstance(dialect, Naming)
    try:
        named = frozenset(dialect.tables(message))
    except MessageError:
        assert case.parent.name == "qlik"
        assert not (message.value or b"").lstrip(b"\xef\xbb\xbf \n").startswith(b"{")
    else:
        # A statement can change rows of more tables than the message names.
        statement = all(not isinstance(change, RowChange) for change in outcome.changes)
        assert named <= tables_of(outcome.changes) if statement else named == tables_of(outcome.changes)


def test_every_dialect_names_tables() -> None:
    """Each dialect has a case above."""
    assert set(DIALECTS) == {case.parent.name for case in of_rows()}


def tables(value: bytes, **options: object) -> frozenset[TableName] | None:
    translator = Translator("s", build("canal", Setup("s"), {"profile": "oss", **options}), Limits())
    return translator.tables(Message("t", 0, 0, 0, None, value))


WRONG = json.loads(update(1)) | {"type": "UPSERT"}


def test_what_can_be_known_of_a_refused_message() -> None:
    """A message has its table's name, several messages have several, and one with no name or two has none."""
    two = json.dumps(WRONG).encode() + b"\n" + json.dumps(WRONG | {"table": "u"}).encode()
    assert frozenset({TableName("shop", None, "t")}) == tables(json.dumps(WRONG).encode())
    assert frozenset({TableName("shop", None, "t"), TableName("shop", None, "u")}) == tables(two, newline_batches=True)
    assert None is tables(json.dumps(WRONG | {"table": ""}).encode())
    assert None is tables(two + b"\n{}", newline_batches=True)
    assert None is tables(two + b"\n{]", newline_batches=True)
    assert None is tables(json.dumps(WRONG).encode()[:-1] + b', "table": "u"}')


def test_a_watermark_is_of_no_table() -> None:
    """It contains nothing about a row, so no table needs to wait for it."""
    value = msgspec.json.encode(json.loads(update(1, both=False)))
    assert frozenset() == tables(value, heartbeat_tables=["shop.t"])
    assert frozenset({TableName("shop", None, "t")}) == tables(value)
