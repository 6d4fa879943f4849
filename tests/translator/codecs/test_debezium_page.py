"""The operator's page matches the code."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tests.translator.codecs.test_debezium import CHANGE, records
from translator.codecs.debezium import Options
from translator.codecs.debezium.connect import TYPES
from translator.codecs.debezium.options import MissingBefore, Unavailable
from translator.codecs.debezium_avro import Options as AvroOptions

PAGE = (Path(__file__).parents[3] / "docs" / "debezium.md").read_text(encoding="utf-8")


def first_cells(head: str) -> list[str]:
    """Return every word in code marks in the first column of the table with that heading."""
    (body,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[ |-]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [name for line in body.splitlines() for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_options() -> None:
    """The table lists all options in order with their defaults."""
    fields = msgspec.structs.fields(Options)
    assert [field.name for field in fields] == first_cells("option")
    for field in fields:
        default = f"[{', '.join(field.default)}]" if isinstance(field.default, tuple) else field.default
        text = str(default).lower() if isinstance(default, bool) else default
        assert f"| `{field.name}` | `{text}` |" in PAGE


def test_options_in_avro() -> None:
    """The table lists all options of Avro, and the defaults of those that JSON does not have."""
    fields = msgspec.structs.fields(AvroOptions)
    assert {field.name for field in fields} == set(first_cells("option in Avro"))
    for field in fields[0], fields[2]:
        assert f"| `{field.name}` | `{field.default}` |" in PAGE


@pytest.mark.parametrize(("head", "choices"), [("policy", MissingBefore), ("`unavailable`", Unavailable)])
def test_choices(head: str, choices: object) -> None:
    """An option's table has a line for each value."""
    assert list(get_args(choices)) == first_cells(head)


def test_types() -> None:
    """The table lists each canonical type once, with its Connect type."""
    assert sorted(TYPES) == sorted(first_cells("canonical type"))
    for line in re.findall(r"^\| `.*$", PAGE.split("## The schema block")[1].split("\n- ")[0], re.MULTILINE):
        names, connect = (re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|"))
        for place, name in enumerate(names):
            kind = TYPES[name]
            wanted = [name] if not connect else connect if len(connect) == len(names) else connect[:1] * len(names)
            assert wanted[place if len(wanted) == len(names) else 0] == kind.type
            assert kind.name is None or kind.name in connect


def test_example() -> None:
    """The record on the page is one that the codec writes."""
    (example,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (record,) = records(CHANGE)
    assert record.value is not None
    assert list(json.loads(example).items()) == list(json.loads(record.value).items())
