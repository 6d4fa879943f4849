"""Canal: the options, and which ones are rejected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.canal.messages import UPDATE, canal, row
from tests.translator.dialects.made import made
from translator.dialects.canal import Canal
from translator.dialects.canal.options import Options
from translator.errors import ConfigError, FatalError
from translator.message import Setup


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"profile": "os"}, "did you mean oss"),
        ({"profil": "oss"}, "did you mean profile"),
        ({"timezone": "Mars"}, "unknown time zone"),
        ({"row_image": "minimal"}, "row_image"),
        ({"labels": "name"}, "labels"),
        ({"binary": "utf8"}, "binary"),
        ({"profile": "ticdc", "instance": {"created": "2021-01-01T00:00:00Z"}}, "profile dts"),
        ({"legacy_update_direction": "x"}, "legacy_update_direction"),
        ({"instance": {"created": "2021-01-01T00:00:00Z"}}, "profile dts"),
        ({"profile": "dts", "instance": {"created": "2021-01-01T00:00:00"}}, "instance"),
        ({"profile": "dts", "instance": {"created": "2021-01-01T00:00:00Z", "stopped": 1}}, "stopped"),
        ({"profile": "dts", "restart_tolerance": -1}, "negative"),
        ({"handle_key_only": "unavailable"}, "profiles ticdc and auto"),
        ({"profile": "ticdc", "handle_key_only": "drop"}, "dead_letter, unavailable"),
    ],
)
def test_wrong_options_stop_the_start(options: dict[str, Any], words: str) -> None:
    """A configuration mistake is reported before the first message."""
    with pytest.raises(ConfigError, match=words):
        canal(**options)


def test_options_come_as_text_too() -> None:
    """On the command line, every option is text."""
    assert "dts" == row(UPDATE, profile="dts", restart_tolerance="600", tinyint1_as_boolean="true").writer.variant


def test_nothing_is_learned() -> None:
    """Canal has no metadata documents."""
    with pytest.raises(FatalError):
        canal().learn("key", b"{}")


@pytest.mark.requirement("canal.accept.6")
def test_the_manual_lists_every_option() -> None:
    """The table in docs/dialects/canal.md has exactly one row per option, in order."""
    manual = (Path(__file__).parents[4] / "docs" / "dialects" / "canal.md").read_text()
    section = manual.partition("## Options")[2].partition("\n## ")[0]
    assert [field.name for field in msgspec.structs.fields(Options)] == re.findall(
        r"^\| `(\w+)` \|", section, re.MULTILINE
    )


def test_times_without_seconds() -> None:
    """A time can be written without seconds, as people and the documentation do."""
    instance = {"created": "2021-05-01T00:00+08:00", "restarted": ["2023-01-01T10:30Z"]}
    made(Canal, Setup("shop"), {"profile": "dts", "instance": instance})
    with pytest.raises(ConfigError, match="created"):
        made(Canal, Setup("shop"), {"profile": "dts", "instance": {"created": "2021-05-01T00:00"}})
