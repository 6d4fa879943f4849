"""The part of the lock that an image installs."""

import re
import tomllib
from pathlib import Path

import pytest

from dev.lock_part import part_of_lock

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SMALL = """\
aaa==1 \\
    --hash=sha256:1
    # via cdc-translator (pyproject.toml)
bbb==2 ; python_full_version < '3.12' \\
    --hash=sha256:2
    # via
    #   aaa
    #   ccc
bbb==3 ; python_full_version >= '3.12' \\
    --hash=sha256:3
    # via aaa
ccc==4 \\
    --hash=sha256:4
    # via cdc-translator (pyproject.toml)
"""


def names(entries: list[str]) -> list[str]:
    return [re.split("==", entry)[0] for entry in entries]


def test_what_is_needed_in_turn_comes_along() -> None:
    """Indirect dependencies are included, with hashes, and in all versions if the version depends on that of Python."""
    entries = part_of_lock(SMALL, {"dependencies": ["aaa>=1"]}, ["dependencies"])
    assert ["aaa", "bbb", "bbb"] == names(entries)
    assert all("--hash=sha256:" in entry for entry in entries)


def test_a_package_that_the_lock_lacks_is_named() -> None:
    """A lock older than pyproject.toml is an error and does not produce a smaller image."""
    with pytest.raises(LookupError, match="zzz; run make lock"):
        part_of_lock(SMALL, {"dependencies": ["zzz"]}, ["dependencies"])


def test_the_translator_does_without_spark() -> None:
    """The translator's image has its own packages without PySpark, and the sink's has both."""
    translator = set(names(part_of_lock(LOCK, PROJECT, ["dependencies"])))
    sink = set(names(part_of_lock(LOCK, PROJECT, ["dependencies", "sink"])))
    assert {"faust-streaming", "confluent-kafka", "aiohttp", "tzdata"} <= translator
    assert {"pyspark", "deltalake"} & translator == set()
    assert {"pyspark", "py4j", "deltalake", "pyarrow"} <= sink
    assert translator < sink
