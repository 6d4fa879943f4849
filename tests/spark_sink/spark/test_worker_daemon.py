"""The changes that the daemon of Spark's workers makes to Python must lose nothing."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path
from zipimport import zipimporter

import pytest

from spark_sink.spark.worker_daemon import reread_changed_archives_only


@pytest.fixture(autouse=True)
def _forget_modules() -> Iterator[None]:
    known = set(sys.modules)
    yield
    for name in sys.modules.keys() - known:
        del sys.modules[name]


def test_an_archive_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules added to an archive later are found. An unchanged archive is not read again."""
    monkeypatch.setattr(zipimporter, "invalidate_caches", zipimporter.invalidate_caches)  # restored at the end
    archive = tmp_path / "modules.zip"
    _write(archive, first_in_archive="VALUE = 1")
    monkeypatch.syspath_prepend(str(archive))
    assert 1 == importlib.import_module("first_in_archive").VALUE
    reread_changed_archives_only()
    assert importlib.util.find_spec("third_in_archive") is None  # since Python 3.12, this reads the archive
    read = zipimport._zip_directory_cache[str(archive)]  # type: ignore[attr-defined]
    importlib.invalidate_caches()
    assert read is zipimport._zip_directory_cache[str(archive)]  # type: ignore[attr-defined]
    _write(archive, first_in_archive="VALUE = 1", second_in_archive="VALUE = 2")
    importlib.invalidate_caches()
    assert 2 == importlib.import_module("second_in_archive").VALUE
    archive.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("third_in_archive")


def _write(archive: Path, **modules: str) -> None:
    with zipfile.ZipFile(archive, "w") as files:
        for name, text in modules.items():
            files.writestr(f"{name}.py", text)
