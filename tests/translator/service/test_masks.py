"""The law of masks: no text of a masked column appears in any written byte or in the log.

Every golden case of every dialect, with markers as values, passes through the pipeline to every codec, with and without
the native path. So do damaged versions, which become dead letters.
"""

import json
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests import sizes
from tests.translator.dialects.case import find_cases
from tests.translator.dialects.qlik import messages as qlik
from tests.translator.dialects.qlik.avro import data_schema
from tests.translator.service._masked import (
    KEY,
    Marked,
    Service,
    leaves,
    marked,
    outside_rows,
    rules,
    spellings,
    with_leaf,
)
from translator.config.mask_rules import MaskRule
from translator.errors import ConfigError
from translator.message import Message
from translator.translation.masking import SourceMasks

CASES = find_cases()
ACTIONS = ("drop", "set_null", "hash", "truncate", "keep_last", "replace")
MARKER = "QZXJVKWYQZXJ"
NUMBER = 918273645091


def case_name(case: Path) -> str:
    return f"{case.parent.name}/{case.name}"


def assert_no_marker(written: bytes, markers: list[bytes], message: Message) -> None:
    leaked = [marker for marker in markers for spelled in spellings(marker) if spelled in written]
    assert not leaked, (leaked, message.value)


def masks_of(found: Marked, action: str) -> SourceMasks:
    return SourceMasks("src", rules(action, found.keys), KEY)


@pytest.fixture(scope="module")
def all_marked() -> dict[Path, Marked]:
    """The golden cases with markers."""
    return {case: marked(case) for case in CASES}


def test_markers_are_met(all_marked: dict[Path, Marked]) -> None:
    """Without masks, the markers appear in the output. Otherwise the law would prove nothing."""
    met = set()
    for case, found in all_marked.items():
        service = Service(found.dialect(), None)
        service.process([found.message, found.message])
        if any(marker in service.written() for marker in found.markers):
            met.add(case.parent.name)
    assert {"canal", "dts_avro", "qlik", "shareplex"} == met
    # Statement cases have no rows and therefore no markers.
    assert sum(bool(found.markers) for found in all_marked.values()) > 50


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_no_text_of_a_masked_column_is_written(case: Path, all_marked: dict[Path, Marked]) -> None:
    found = all_marked[case]
    for action, native in (*((action, False) for action in ACTIONS), ("hash", True)):
        service = Service(found.dialect(), masks_of(found, action), native=native)
        service.process([found.message, found.message])  # the first of a schema takes the plain path
        assert_no_marker(service.written(), found.markers, found.message)
        assert 0 == service.taken


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_nor_of_messages_that_are_damaged(case: Path, all_marked: dict[Path, Marked]) -> None:
    """Messages are truncated or have changed bytes, even within a marker."""
    found, chance = all_marked[case], Random(case_name(case))
    value = found.message.value or b""
    messages = []
    for _ in range(sizes.count(0.3)):
        damaged = bytearray(value[: chance.randrange(len(value) + 1)] if chance.random() < 0.3 else value)
        for _ in range(chance.randrange(4) if damaged else 0):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        messages.append(msgspec.structs.replace(found.message, value=bytes(damaged)))
    for native in (False, True):
        service = Service(found.dialect(), masks_of(found, "hash"), native=native, holds=chance.random() < 0.3)
        for message in messages:
            try:
                service.process([message, found.message])
            except ConfigError:  # the damage made another column the key
                continue
        legitimate = b"".join(outside_rows(found.dialect(), message) for message in messages)
        markers = [marker for marker in found.markers if marker not in legitimate]
        assert_no_marker(service.written(), markers, found.message)


def _is_json(case: Path) -> bool:
    try:
        json.loads((case / "message.json").read_bytes())
    except (OSError, ValueError):
        return False
    return True


JSON_CASES = [case for case in CASES if _is_json(case)]


@pytest.mark.parametrize("case", JSON_CASES, ids=case_name)
def test_nor_of_values_in_the_wrong_place(case: Path, all_marked: dict[Path, Marked]) -> None:
    """A marker is put in each place of the message in turn. Unless that is a name or position, it is not written."""
    found = all_marked[case]
    document = json.loads((case / "message.json").read_bytes())
    dialect = found.dialect()
    masks = masks_of(found, "hash")
    service = Service(dialect, masks)
    for path in leaves(document):
        for stray in (MARKER, NUMBER):
            value = json.dumps(with_leaf(document, path, stray)).encode()
            message = msgspec.structs.replace(found.message, value=value, headers=(("h", b"QZXJVKWYQZXJ"),))
            legitimate = outside_rows(dialect, message)
            marker = str(stray).encode()
            if marker in legitimate:
                continue
            before = len(service.written())
            try:
                service.process([message])
            except ConfigError:
                continue
            assert_no_marker(service.written()[before:], [marker], message)


@pytest.mark.parametrize("action", ACTIONS)
def test_nor_of_schemas_that_quote_it(action: str) -> None:
    """A schema in Qlik's metadata can have values as defaults and in its documentation."""
    quoting = {"default": MARKER, "doc": f"such as {MARKER}", "sample": NUMBER}
    schema = data_schema({"ID": "long", "EMAIL": "string"})
    schema["fields"] = [{**field, **quoting} for field in schema["fields"]]
    told = qlik.metadata({"ID": {"type": "INT8", "primaryKeyPosition": 1}, "EMAIL": {}})
    told["message"]["dataSchema"] = json.dumps({**schema, **quoting})
    masks = SourceMasks("src", [MaskRule(action, column="EMAIL", length=2, text="x")], KEY)
    service = Service(qlik.dialect(), masks)
    learning = qlik.message(told)
    service.process([learning])
    assert b"dataSchema" in service.written()
    assert_no_marker(service.written(), [MARKER.encode(), str(NUMBER).encode()], learning)
