"""`check` of both programs warns about settings that a later release removes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_sink.commands
import translator.commands
from cdc_core import deprecations
from cdc_core.deprecations import SPARK_SINK, TRANSLATOR, Deprecation

COMPOSE = Path(__file__).parents[2] / "compose"
OLD = Deprecation("0.2.0", "0.4.0", "Use something else.")
WARNING = "is deprecated since 0.2.0, and 0.4.0 rejects it. Use something else."


def test_the_translator_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is in a list, in a mapping of options, or not in the file."""
    known = {"sources.topics": OLD, "sources.options.profile": OLD, "masks": OLD}
    monkeypatch.setattr(deprecations, "TRANSLATOR", known)
    ran = CliRunner().invoke(translator.commands.cli, ["check", "-c", str(COMPOSE / "translator.yaml")])
    assert 0 == ran.exit_code, ran.output
    assert f"`sources.topics` {WARNING}" in ran.output
    assert f"`sources.options.profile` {WARNING}" in ran.output
    assert "`masks`" not in ran.output


def test_the_sink_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecations, "SPARK_SINK", {"tables.warehouse": OLD, "tables.exclude": OLD})
    ran = CliRunner().invoke(spark_sink.commands.cli, ["check", "-c", str(COMPOSE / "sink.yaml")])
    assert 0 == ran.exit_code, ran.output
    assert f"note   settings: `tables.warehouse` {WARNING}" in ran.output
    assert "`tables.exclude`" not in ran.output


def test_the_tables_name_settings_and_leave_time() -> None:
    """Two minor releases warn before one rejects."""
    for known in (TRANSLATOR, SPARK_SINK):
        for found in known.values():
            since, removed = (tuple(map(int, text.split("."))) for text in (found.since, found.removed_in))
            assert removed[0] > since[0] or removed[1] - since[1] >= 2
