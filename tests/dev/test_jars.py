"""The jars match the list. Otherwise an error identifies the differences."""

import hashlib
import os
import re
import threading
from pathlib import Path

import pyspark
import pytest

from dev import jars
from dev.jars import JarsError, broker_jars, spark_jars, verify


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A cache folder with two toy jars."""
    path = tmp_path / "jars"
    for name, content in {"spark/a-1.jar": b"aaaa", "broker/b-2.jar": b"bbbb"}.items():
        (path / name).parent.mkdir(parents=True)
        (path / name).write_bytes(content)
    return path


@pytest.fixture
def checksums(tmp_path: Path) -> Path:
    """A list with the checksums of those two."""
    path = tmp_path / "jars.sha256"
    lines = {"broker/b-2.jar": b"bbbb", "spark/a-1.jar": b"aaaa"}.items()
    path.write_text("".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in lines))
    return path


class TestVerify:
    def test_listed_jars_pass(self, directory: Path, checksums: Path) -> None:
        """Listed jars pass, first by content and then by size and time."""
        verify(directory, checksums)
        verify(directory, checksums)

    def test_changed(self, directory: Path, checksums: Path) -> None:
        """An error identifies a jar with other content, even if the size is the same."""
        verify(directory, checksums)
        (directory / "spark/a-1.jar").write_bytes(b"AAAA")
        with pytest.raises(JarsError, match=r"changed or damaged: spark/a-1\.jar\)\. Delete that folder and run `make"):
            verify(directory, checksums)

    def test_missing(self, directory: Path, checksums: Path) -> None:
        """An error identifies a missing jar, even after verification."""
        verify(directory, checksums)
        (directory / "broker/b-2.jar").unlink()
        with pytest.raises(JarsError, match=r"\(missing: broker/b-2\.jar\)"):
            verify(directory, checksums)

    def test_extra(self, directory: Path, checksums: Path) -> None:
        """An error identifies an unlisted jar, because it would be on the class path."""
        verify(directory, checksums)
        (directory / "spark/evil-9.jar").write_bytes(b"?")
        with pytest.raises(JarsError, match=r"\(not in the list: spark/evil-9\.jar\)"):
            verify(directory, checksums)

    def test_all_differences_in_one_error(self, directory: Path, checksums: Path) -> None:
        """One error reports all differences."""
        (directory / "spark/a-1.jar").rename(directory / "spark/a-2.jar")
        with pytest.raises(JarsError, match=r"\(missing: spark/a-1\.jar; not in the list: spark/a-2\.jar\)"):
            verify(directory, checksums)

    def test_touched(self, directory: Path, checksums: Path) -> None:
        """A jar with the same content and another time passes."""
        verify(directory, checksums)
        os.utime(directory / "spark/a-1.jar", (1, 1))
        verify(directory, checksums)

    def test_other_list(self, directory: Path, checksums: Path) -> None:
        """A verification against one list does not count for another."""
        verify(directory, checksums)
        checksums.write_text(checksums.read_text().replace("b-2", "b-3"))
        with pytest.raises(JarsError, match=r"missing: broker/b-3\.jar; not in the list: broker/b-2\.jar"):
            verify(directory, checksums)

    def test_damaged_marker(self, directory: Path, checksums: Path) -> None:
        """An unreadable marker leads to a new verification."""
        verify(directory, checksums)
        (directory / jars.MARKER).write_text("{")
        verify(directory, checksums)


class TestFetching:
    @pytest.fixture
    def fetches(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checksums: Path) -> list[Path]:
        """Replace fetching with copying the toy jars, and return a list that grows with each fetch."""
        done: list[Path] = []

        def retrieve(temporary: Path) -> None:
            done.append(temporary)
            for name, content in {"spark/a-1.jar": b"aaaa", "broker/b-2.jar": b"bbbb"}.items():
                (temporary / "jars" / name).parent.mkdir(parents=True)
                (temporary / "jars" / name).write_bytes(content)

        monkeypatch.setenv("CDC_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(jars, "CHECKSUMS", checksums)
        monkeypatch.setattr(jars, "_retrieve", retrieve)
        return done

    def test_once(self, fetches: list[Path]) -> None:
        """The second call finds what the first has fetched."""
        assert ["a-1.jar"] == [path.name for path in spark_jars()]
        assert ["b-2.jar"] == [path.name for path in broker_jars()]
        assert 1 == len(fetches)

    def test_two_at_a_time(self, fetches: list[Path]) -> None:
        """Of several concurrent callers, one fetches and the others wait."""
        threads = [threading.Thread(target=spark_jars) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 == len(fetches)

    def test_not_the_listed_ones(self, fetches: list[Path], checksums: Path, tmp_path: Path) -> None:
        """Downloads that do not match the list are discarded, and the next call fetches again."""
        right = checksums.read_text()
        checksums.write_text(right.replace("a-1", "a-0"))
        with pytest.raises(JarsError, match="They were deleted"):
            spark_jars()
        left = [path.name for path in (tmp_path / "cache" / "cdc-translator").iterdir() if path.is_dir()]
        assert [] == left
        checksums.write_text(right)
        assert ["a-1.jar"] == [path.name for path in spark_jars()]
        assert 2 == len(fetches)

    def test_write_checksums(self, fetches: list[Path], checksums: Path) -> None:
        """The maintainer's list contains the fetched jars, sorted, in the format of sha256sum."""
        right = checksums.read_text()
        checksums.write_text("")
        assert 2 == jars.write_checksums()
        assert right == checksums.read_text()
        assert ["a-1.jar"] == [path.name for path in spark_jars()]
        assert 1 == len(fetches)


def test_nothing_twice_on_the_class_path_of_spark() -> None:
    """None of our jars is also among PySpark's in another version."""
    shipped = {_artifact(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    assert set() == {_artifact(path) for path in spark_jars()} & shipped


def test_the_list_is_sorted_and_complete() -> None:
    """The committed list contains each jar of both class paths once, in order."""
    names = [line.split("  ")[1] for line in jars.CHECKSUMS.read_text().splitlines()]
    assert sorted(set(names)) == names
    assert names == sorted(f"{path.parent.name}/{path.name}" for path in [*spark_jars(), *broker_jars()])


def _artifact(path: Path) -> str:
    return re.sub(r"-\d.*", "", path.name)
