"""The class archive of the broker: created once, used by every broker, and optional."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dev.jars import jars_directory
from dev.servers.broker import Broker
from dev.servers.class_archive import archive_options


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "jars" / "broker" / "a-1.jar"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one")
    return path


class Trainer:
    """Write what a JVM would write, or fail."""

    def __init__(self, content: bytes | None = b"classes") -> None:
        self.runs = 0
        self._content = content

    def __call__(self, options: list[str]) -> None:
        self.runs += 1
        (option,) = options
        if self._content is None:
            raise RuntimeError("no such thing here")
        Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(self._content)


def archive_of(options: list[str]) -> Path:
    return Path(options[0].removeprefix("-XX:SharedArchiveFile="))


def test_made_once(jar: Path) -> None:
    """The second broker finds the archive that the first one created next to the jars."""
    train = Trainer()
    first, second = (archive_options(Path(sys.executable), [jar], train) for _ in range(2))
    assert first == second
    assert b"classes" == archive_of(first).read_bytes()
    assert jar.parent.parent == archive_of(first).parent
    assert 1 == train.runs


def test_other_jars_have_another(jar: Path) -> None:
    """A changed jar gets a new archive, because the JVM would reject the old one."""
    train = Trainer()
    before = archive_options(Path(sys.executable), [jar], train)
    jar.write_bytes(b"other")
    assert before != archive_options(Path(sys.executable), [jar], train)
    assert 2 == train.runs


@pytest.mark.parametrize("content", [None, b""], ids=["the run fails", "the run leaves nothing"])
def test_goes_without(jar: Path, content: bytes | None) -> None:
    """If no archive can be created, the broker starts without one, and the next broker does not try again."""
    train = Trainer(content)
    assert [[], []] == [archive_options(Path(sys.executable), [jar], train) for _ in range(2)]
    assert 1 == train.runs


def test_a_cache_that_cannot_be_written(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only cache is not an error."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr("dev.servers.class_archive.only_one", refuse)
    assert [] == archive_options(Path(sys.executable), [jar], Trainer())


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_broker_uses_it(broker: Broker) -> None:
    """Java accepts the archive that it created from the real jars."""
    mapped = Path(f"/proc/{broker.pid}/maps").read_text()
    assert str(jars_directory() / "classes-") in mapped
