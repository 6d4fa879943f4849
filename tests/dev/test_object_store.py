"""Developers or CI build the object store. If it is missing, an error explains how."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.servers import object_store
from dev.servers.object_store import ObjectStore, ObjectStoreError


def test_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error states the command, and nothing is downloaded unasked."""
    monkeypatch.setenv("CDC_CACHE", str(tmp_path))
    with pytest.raises(ObjectStoreError, match=r"was not built\. .* -m dev\.servers\.object_store --build"):
        ObjectStore(directory=tmp_path / "store").start()


def test_no_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without Go, CI skips it."""
    monkeypatch.setenv("CDC_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert 1 == object_store.main(["--build"])
    assert "`go` was not found" in capsys.readouterr().err
