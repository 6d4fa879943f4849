"""The built-in dialects pass the battery for plug-ins, contained as plug-ins are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.translator.dialects.case import find_cases
from translator.conformance.battery import scores
from translator.conformance.cases import Case
from translator.conformance.package import Package
from translator.conformance.trial import Subject
from translator.dialects import DIALECTS
from translator.message import DeclaredTable, Message


def subject(dialect: str) -> Subject:
    package = Package(dialect, "cdc-translator", "0", f"translator.dialects.{dialect}.plugin:PLUGIN", ())
    cases = [case for folder in find_cases() if folder.parent.name == dialect and (case := case_of(folder))]
    return Subject(package, DIALECTS[dialect], cases)


def case_of(folder: Path) -> Case | None:
    """Return a golden case as a case of a plug-in, or None if it needs documents that are not in a message."""
    if (folder / "schemas.json").exists() or (folder / "documents.json").exists():
        return None
    (path,) = folder.glob("message.*")
    keys = [found.read_bytes() for found in folder.glob("key.*")]
    values = [*(found.read_bytes() for found in sorted(folder.glob("metadata*"))), path.read_bytes()]
    messages = [Message("topic", 0, offset, 0, None, value) for offset, value in enumerate(values)]
    messages[-1] = replace(messages[-1], key=keys[0] if keys else None)
    tables = msgspec.convert(read(folder / "tables.json", []), tuple[DeclaredTable, ...])
    return Case(folder.name, tuple(messages), read(folder / "options.json", {}), tables)


def read(path: Path, default: Any) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else default


VALUES_APART = "absent, NULL, unavailable"
OTHERWISE: Mapping[str, frozenset[str]] = {
    # In Qlik's old images, null can also mean that a value was not sent, so the column is left out.
    "qlik": frozenset(
        {
            *("flattened_headers", "key_in_json", "mask_disproved", "mask_of_whole_bytes", "old_nulls_disproved"),
            *("renamed_sections", "update_bare_toy_headers", "update_enveloped_toy_headers", "update_oracle"),
        }
    ),
    # SharePlex leaves NULL out of inserts. Declared columns reveal which ones.
    "shareplex": frozenset({"quest_insert_declared"}),
}
"""The cases in which null or a missing member does not mean what it means in other formats."""

NOT_APPLICABLE: Mapping[str, frozenset[str]] = {
    "canal": frozenset(),
    # No golden case is JSON in which a key changes. Tests of these dialects cover it (tests/reading.py).
    "qlik": frozenset({"key changes"}),
    "shareplex": frozenset({"key changes"}),
    "dts_avro": frozenset({VALUES_APART, "nullable keys", "key changes"}),  # Avro
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scores(dialect: str) -> None:
    """The properties apply as listed, and none fails. The golden cases have tests of their own."""
    tested = subject(dialect)
    known = OTHERWISE.get(dialect, frozenset())
    ordinary = replace(tested, cases=[case for case in tested.cases if case.name not in known])
    found = [score for score in scores(ordinary) if score.name != "golden cases"]
    assert [] == [str(score) for score in found if score.result == "failed"]
    assert NOT_APPLICABLE[dialect] == {score.name for score in found if score.result == "not applicable"}


@pytest.mark.parametrize("dialect", OTHERWISE)
def test_the_other_cases(dialect: str) -> None:
    """Each case in the list above is different in this one property."""
    tested = subject(dialect)
    for case in tested.cases:
        if case.name in OTHERWISE[dialect]:
            found = scores(replace(tested, cases=[case]))
            assert [VALUES_APART] == [
                one.name for one in found if one.result == "failed" and one.name != "golden cases"
            ]
