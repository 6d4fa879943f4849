"""Options of the Qlik dialect that no other module covers, and the page that lists them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.qlik.messages import bare, change, dialect, message, refusal
from translator.dialects.qlik.decode import Options
from translator.errors import ConfigError
from translator.message import DeclaredTable, Skip, TableName

ROW = {"id": 1}
PAGE = Path(__file__).parents[4] / "docs" / "dialects" / "qlik.md"


def test_the_manual_lists_every_option() -> None:
    """The table has a row for each option."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    listed = [
        line for field in msgspec.structs.fields(Options) for line in lines if line.startswith(f"| `{field.name}`")
    ]
    assert len(listed) == len(msgspec.structs.fields(Options))


@pytest.mark.requirement("qlik.headers.1")
def test_read_as_refresh() -> None:
    """READ is rejected unless the operator says that it is REFRESH."""
    assert "UNKNOWN_OPERATION" == refusal(dialect(), bare("READ", ROW))[0]
    assert "r" == change(dialect(read_as_refresh=True), bare("Read", ROW)).op


@pytest.mark.requirement("qlik.headers.3")
@pytest.mark.parametrize("number", [0, 1_694_402_605_000_000, -1])
def test_numeric_timestamp_of_micros(number: int) -> None:
    """With a stated unit, a number is a time."""
    read = change(dialect(numeric_timestamp="micros"), bare("INSERT", ROW, timestamp=number))
    assert (number, None) == (read.ts_commit_us, read.notes)


@pytest.mark.requirement("qlik.headers.3")
@pytest.mark.parametrize(
    ("how", "number"), [("reject", 1000), ("micros", 1.5), ("micros", 2**63), ("micros", -(2**62))]
)
def test_numeric_timestamp_refused(how: str, number: Any) -> None:
    """A numeric timestamp is rejected by option, and if it is no number of microseconds within the calendar."""
    reader = dialect(numeric_timestamp=how)
    assert ("INVALID_FIELD", "$.headers.timestamp") == refusal(reader, bare("INSERT", ROW, timestamp=number))


def test_carry() -> None:
    """On request, headers without their own field go into `ext` verbatim. Empty ones do not."""
    told = bare("INSERT", ROW, streamPosition="a;b", externalSchemaId="")
    assert change(dialect(), told).ext is None
    assert {"streamPosition": "a;b"} == change(dialect(carry=["streamPosition", "externalSchemaId"]), told).ext
    assert change(dialect(carry=["externalSchemaId"]), told).ext is None
    wrong = bare("INSERT", ROW, streamPosition=5)
    assert ("INVALID_FIELD", "$.headers.streamPosition") == refusal(dialect(carry=["streamPosition"]), wrong)


@pytest.mark.parametrize("name", ["attrep_status", "ATTREP_HISTORY", "attrep_suspended_tables"])
def test_control_tables(name: str) -> None:
    """Rows of Replicate's own tables are normal rows, or skipped under their own name."""
    assert TableName(None, "S", name) == change(dialect(topics=f"S.{name}"), bare("INSERT", ROW)).table
    skipping = dialect(topics=f"S.{name}", control_tables="skip")
    assert Skip("control_table") == skipping.decode(message(bare("INSERT", ROW)))


def test_table_that_is_no_control_table() -> None:
    """Only names with the prefix are Replicate's."""
    assert change(dialect(topics="attrep_x.T", control_tables="skip"), bare("INSERT", ROW))
    assert change(dialect(topics="S.my_attrep_", control_tables="skip"), bare("INSERT", ROW))


@pytest.mark.parametrize(
    "options",
    [
        {"avro_masks": "middle"},
        {"numeric_timestamp": "seconds"},
        {"read_as_refresh": "perhaps"},
        {"carry": ["operation"]},
        {"message_key": "text"},
        {"control_tables": "drop"},
    ],
)
def test_words_that_no_option_knows(options: dict[str, Any]) -> None:
    """Unknown values stop the start."""
    with pytest.raises(ConfigError):
        dialect(**options)


def test_declared_key_that_the_row_has_not() -> None:
    """A declared key is kept, and the core notes rows that lack it."""
    read = change(dialect(tables=(DeclaredTable("S.T", key=("other",)),)), bare("INSERT", ROW))
    assert ("other",) == read.key_columns
