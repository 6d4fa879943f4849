"""Canal's jars are downloaded once, and only the listed ones are used."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

import dev.servers.canal
from dev.servers.canal import CanalError, jars

JAR = b"toy"


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Replace fetching with a listed toy jar, and return a list that grows with each fetch."""
    done: list[Path] = []

    def fetch(wanted: Path, configurations: Sequence[str], types: Sequence[str], temporary: Path, what: str) -> None:
        done.append(temporary)
        (temporary / "jars" / "canal").mkdir(parents=True)
        (temporary / "jars" / "canal" / "toy.jar").write_bytes(JAR)

    checksums = tmp_path / "canal.sha256"
    checksums.write_text(f"{hashlib.sha256(JAR).hexdigest()}  toy.jar\n")
    monkeypatch.setenv("CDC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(dev.servers.canal, "CHECKSUMS", checksums)
    monkeypatch.setattr(dev.servers.canal, "fetch", fetch)
    return done


def test_once(fetches: list[Path]) -> None:
    """The second call finds the fetched jars."""
    assert jars() == jars()
    assert ["toy.jar"] == [path.name for path in jars().iterdir()]
    assert 1 == len(fetches)


def test_not_the_listed_ones(fetches: list[Path]) -> None:
    """Jars that differ from the list are not used. --write-checksums fetches them again and renews the list."""
    dev.servers.canal.CHECKSUMS.write_text(f"{64 * '0'}  toy.jar\n")
    with pytest.raises(CanalError, match=r"differ from dev/servers/canal\.sha256: delete that folder"):
        jars()
    assert jars(write_checksums=True) == jars()
    assert dev.servers.canal.CHECKSUMS.read_text() == f"{hashlib.sha256(JAR).hexdigest()}  toy.jar\n"
    assert 2 == len(fetches)
