"""Two writers of one table, with deltalake."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_sink.errors import Overtaken
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.delta.mirror import DeltaMirror
from spark_sink.tables.meta_columns import DELETED_AT
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

NAME = "shop_sales.orders"


@pytest.fixture
def twice(lake: Lake) -> tuple[DeltaMirror, DeltaMirror]:
    """Open a table of one row twice, each time with a change of that row."""
    schema = lake.announce(schema_of({"id": "int64", "a": "string"}))
    lake.apply(0, [change("c", {"id": 1}, {"a": "x"}, pos=1, schema=schema)])
    first, second = lake.tables.open(NAME), lake.tables.open(NAME)
    assert isinstance(first, DeltaMirror)
    assert isinstance(second, DeltaMirror)
    return first, second


def _changes(mirror: DeltaMirror, value: str) -> TableChanges:
    rows = mirror._table.to_pyarrow_table()
    place = rows.column_names.index("a")
    rows = rows.append_column(DELETED_AT, pa.nulls(1, pa.timestamp("us", "UTC")))
    return TableChanges(rows.set_column(place, "a", pa.array([value])), kept={}, inserts_only=False)


def test_another_marker(twice: tuple[DeltaMirror, DeltaMirror], lake: Lake) -> None:
    """The second writer gets an error for operators and has written nothing."""
    first, second = twice
    changes = [_changes(mirror, value) for mirror, value in zip(twice, ("first", "second"), strict=True)]
    first.write(changes[0], Marker("one", 7))
    with pytest.raises(
        Overtaken, match=r"another sink or program wrote the table .*shop_sales/orders/? at the same time"
    ):
        second.write(changes[1], Marker("two", 7))
    assert [{"id": 1, "a": "first"}] == lake.rows()


def test_the_same_marker(twice: tuple[DeltaMirror, DeltaMirror], lake: Lake) -> None:
    """If a commit conflicts with itself, it succeeded: the store's response was lost and the commit was retried."""
    first, second = twice
    changes = [_changes(mirror, "once") for mirror in twice]
    first.write(changes[0], Marker("one", 7))
    second.write(changes[1], Marker("one", 7))
    assert (first.version, 7) == (second.version, second.applied("one"))
    assert [{"id": 1, "a": "once"}] == lake.rows()


def test_appends_with_different_deleted_rows(twice: tuple[DeltaMirror, DeltaMirror], lake: Lake) -> None:
    """Each commit repeats the marker of deleted rows. An append that would set this marker back is a conflict."""
    first, second = twice
    rows, time = _changes(first, "x").rows.set_column(0, "id", pa.array([2])), pa.array([1], pa.timestamp("us", "UTC"))
    added = TableChanges(rows, kept={}, inserts_only=True)
    removed = added._replace(rows=rows.drop_columns(DELETED_AT).append_column(DELETED_AT, time))
    first.write(removed, Marker("one", 7))
    with pytest.raises(Overtaken):
        second.write(added, Marker("two", 7))
    opened = lake.tables.open(NAME)
    assert isinstance(opened, DeltaMirror)
    assert opened.marks({(2,)})[(2,)].deleted
