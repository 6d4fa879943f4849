"""A further list of jars is downloaded once, and only the listed jars are used."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

import dev.jar_list
from dev.jar_list import JarList, WrongJarsError

JAR = b"toy"
LINE = f"{hashlib.sha256(JAR).hexdigest()}  toys/toy.jar\n"


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Replace fetching with a toy jar, and return a list that grows with each fetch."""
    done: list[Path] = []

    def fetch(wanted: Path, configurations: Sequence[str], types: Sequence[str], temporary: Path, what: str) -> None:
        done.append(temporary)
        (temporary / "jars" / "toys").mkdir(parents=True)
        (temporary / "jars" / "toys" / "toy.jar").write_bytes(JAR)

    monkeypatch.setenv("CDC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(dev.jar_list, "fetch", fetch)
    return done


@pytest.fixture
def toys(tmp_path: Path) -> JarList:
    """A list of one jar."""
    wanted = tmp_path / "toys.xml"
    wanted.write_text("<toys/>")
    wanted.with_suffix(".sha256").write_text(LINE)
    return JarList("dev.toys", wanted, ("toys",), "the toys")


def test_once(fetches: list[Path], toys: JarList) -> None:
    """The second call finds the fetched jars."""
    assert toys.folder() == toys.folder()
    assert ["toys/toy.jar"] == [str(path.relative_to(toys.folder())) for path in toys.folder().glob("*/*")]
    assert 1 == len(fetches)


def test_not_the_listed_ones(fetches: list[Path], toys: JarList) -> None:
    """Jars that differ from the list are not used. --write-checksums fetches them again and renews the list."""
    toys.checksums.write_text(LINE.replace(LINE[:64], 64 * "0"))
    with pytest.raises(WrongJarsError, match=r"differ from toys\.sha256: delete that folder.* -m dev\.toys"):
        toys.folder()
    assert toys.folder(write_checksums=True) == toys.folder()
    assert toys.checksums.read_text() == LINE
    assert 2 == len(fetches)
