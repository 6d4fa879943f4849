"""Options of the dialect: presets, and what is rejected at startup."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.dialects.shareplex.messages import KEYED, body, dialect, refusal, row
from translator.dialects.shareplex.options import OPERATIONS, PRESETS, WORDS, documented
from translator.errors import ConfigError


@pytest.mark.parametrize("preset", PRESETS)
def test_an_event_names_its_preset(preset: str) -> None:
    """The variant is the preset declared by the operator."""
    writer = row(dialect(preset=preset), body("ins", data={"A": 1})).writer
    assert (writer.variant, writer.variant_basis) == (preset, "declared")


def test_quest_is_the_default() -> None:
    """Without options, the writer is Quest SharePlex Post."""
    assert row(dialect(), body("ins", data={"A": 1})).writer.variant == "quest"


@pytest.mark.requirement("shareplex.accept.6")
def test_a_configured_zone_wins_over_the_preset() -> None:
    """`timezone` replaces the zone of the preset, and the event has the assumed zone."""
    change = row(
        dialect(preset="dts", timezone="+08:00"), body("ins", meta={"time": "1970-01-01T08:00:00"}, data={"A": 1})
    )
    assert (change.ts_commit_us, change.notes) == (0, ["TZ_ASSUMED=+08:00", "KEY_UNDECLARED"])


@pytest.mark.requirement("shareplex.accept.2")
def test_further_spellings_of_operations_are_exact() -> None:
    """`operations` adds an undocumented spelling, and no similar one is accepted."""
    reader = dialect(KEYED, operations={"trunc": "TRUNCATE", "refresh": "ins"})
    assert row(reader, body("trunc")).op == "t"
    assert row(reader, body("refresh", data={"ID": 1})).op == "c"
    assert refusal(reader, body("TRUNC"))[0] == "UNKNOWN_OPERATION"


@pytest.mark.requirement("shareplex.accept.2")
def test_every_alias_means_an_operation() -> None:
    """Both tables of operations agree in both directions."""
    assert [documented(word) for word in WORDS] == list(OPERATIONS)
    assert [documented(operation) for operation in OPERATIONS] == list(OPERATIONS)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"preset": "oracle"}, "dts, lenient, quest"),
        ({"presett": "dts"}, "did you mean preset?"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": ""}, "timezone"),
        ({"default_table": "A."}, "default_table"),
        ({"default_table": ""}, "default_table"),
        ({"operations": {"trunc": "TRUNCATED"}}, "did you mean TRUNCATE?"),
        ({"operations": {"ins": "del"}}, "ins"),
        ({"operations": "trunc"}, "operations"),
    ],
)
def test_wrong_options_stop_at_start(options: dict[str, Any], named: str) -> None:
    """An unknown or invalid option is a ConfigError with what is allowed."""
    with pytest.raises(ConfigError, match=r".") as refused:
        dialect(**options)
    assert named in str(refused.value)
