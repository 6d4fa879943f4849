"""The files that remember deleted rows, in an object store."""

from __future__ import annotations

import pytest

from dev.servers.object_store import BUCKET, ObjectStore
from spark_sink.tables import deleted_rows
from spark_sink.tables.deleted_rows import has_files
from tests.spark_sink.s3.stored_sink import options
from tests.spark_sink.tables.test_deleted_rows import NAME, Commits

pytestmark = [pytest.mark.integration, pytest.mark.faults]


@pytest.mark.parametrize("size", [0, 1 << 20])
def test_they_are_found(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Files are written, listed, read in whole or in part, and deleted."""
    for name, value in options(object_store).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(deleted_rows, "_READ_WHOLE", size)
    monkeypatch.setattr(deleted_rows, "_UNCOMMITTED_DAYS", 0)
    monkeypatch.setattr(deleted_rows, "_LINK", 1)
    table = Commits(f"s3a://{BUCKET}/deleted-rows-{size}")
    assert not has_files(str(table.warehouse), NAME)
    for step in range(3):
        table.remember({("a", id): (str(step), 0) for id in range(step, step + 10)})
    assert has_files(str(table.warehouse), NAME)
    expected = {("a", id): (str(min(id, 2)), 0) for id in range(12)}
    assert expected == table.found()
    assert (2, 0) == (table.opened().clean(0), table.opened().clean(0))
    assert expected == table.found([("a", 0), ("a", 11)])
