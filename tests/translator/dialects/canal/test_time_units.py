"""Times without a unit: their size decides, with a note, and 0 is no time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translator.dialects.canal.messages import canal, message, of_type, other, refused, row, update
from translator.message import Changes, RowChange

INSTANT = 1_700_000_000_000_000


@pytest.mark.parametrize("profile", ["oss", "dts", "ticdc", "flink_cdc", "ckafka"])
@pytest.mark.parametrize(
    ("sent", "micros", "unit"),
    [
        (1_700_000_000_000, INSTANT, None),
        (1_700_000_000, INSTANT, "seconds"),
        (INSTANT, INSTANT, "microseconds"),
        (0, None, None),
        (None, None, None),
        (1, 1_000_000, "seconds"),
        (10**10 - 1, (10**10 - 1) * 10**6, "seconds"),
        (10**10, 10**13, None),
        (10**14 - 1000, (10**14 - 1000) * 1000, None),
        (10**14, 10**14, "microseconds"),
        (10**17 - 1, 10**17 - 1, "microseconds"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["shortest", "spaced"])
def test_the_unit_is_told_by_the_size(
    sent: int | None, micros: int | None, unit: str | None, profile: str, separators: tuple[str, str]
) -> None:
    """White space does not matter."""
    value = json.dumps(update(es=sent, ts=sent), separators=separators).encode()
    outcome = canal(profile=profile).decode(message(value))
    assert isinstance(outcome, Changes)
    (change,) = outcome.changes
    assert isinstance(change, RowChange)
    assert (micros, micros) == (change.ts_commit_us, change.ts_capture_us)
    expected = [f"TIME_UNIT_ASSUMED={name}:{unit}" for name in ("es", "ts") if unit is not None]
    assert expected == [note for note in change.notes or () if note.startswith("TIME_UNIT")]


def test_each_time_has_a_unit_of_its_own() -> None:
    change = row(update(es=1_700_000_000), profile="oss")
    assert (INSTANT, 1_700_000_000_123_000) == (change.ts_commit_us, change.ts_capture_us)
    assert ["TIME_UNIT_ASSUMED=es:seconds"] == change.notes


def test_seconds_are_no_mark_of_another_writer_than_canal() -> None:
    """Only milliseconds that are not whole seconds are a mark."""
    assert "VARIANT_CONFLICT" not in (row(update(es=1_700_000_001), profile="oss").notes or ())


@pytest.mark.parametrize("sent", [-1, 10**17, 2**63])
def test_what_is_no_time_in_any_unit_is_refused(sent: int) -> None:
    assert "INVALID_FIELD" == refused(update(es=sent), profile="oss").code


@pytest.mark.parametrize("unit", [1, 1000, 1_000_000])
def test_a_restart_is_compared_in_the_unit_of_the_message(unit: int) -> None:
    instance = {"created": "2021-01-01T00:00:00Z", "restarted": ["2023-01-01T00:00:00Z"]}
    after, before = 1_700_000_000 * unit, 1_600_000_000 * unit
    body: dict[str, Any] = {"data": [{"id": "7"}], "old": [{"id": "8"}]}
    variants = [row(update(**body, ts=ts), profile="dts", instance=instance).writer.variant for ts in (before, after)]
    assert ["dts_legacy", "dts"] == variants


def test_statements_and_heartbeats_carry_the_note() -> None:
    ddl = of_type("ALTER", sql="alter table orders add c int", isDdl=True, es=1_700_000_000)
    assert ["TIME_UNIT_ASSUMED=es:seconds"] == other(ddl, profile="oss").notes
